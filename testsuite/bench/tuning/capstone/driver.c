/*
 * Capstone: reads bytes of instructions from the disassembler's own test lists, disassembles them with details, and sums text and operands.
 *
 * usage: capstone ARCHITECTURES FILE ROUNDS      ARCHITECTURES, separated by commas: x86 x86-32 arm thumb arm64 mips ppc sparc systemz
 */
#include <capstone/capstone.h>
#include "bench.h"

struct machine {
    const char *name;
    cs_arch arch;
    cs_mode mode;
};

static const struct machine machines[] = {
    {"x86", CS_ARCH_X86, CS_MODE_64},
    {"x86-32", CS_ARCH_X86, CS_MODE_32},
    {"arm", CS_ARCH_ARM, CS_MODE_ARM},
    {"thumb", CS_ARCH_ARM, CS_MODE_THUMB},
    {"arm64", CS_ARCH_ARM64, CS_MODE_ARM},
    {"mips", CS_ARCH_MIPS, CS_MODE_MIPS32 | CS_MODE_BIG_ENDIAN},
    {"ppc", CS_ARCH_PPC, CS_MODE_64 | CS_MODE_BIG_ENDIAN},
    {"sparc", CS_ARCH_SPARC, CS_MODE_BIG_ENDIAN},
    {"systemz", CS_ARCH_SYSZ, CS_MODE_BIG_ENDIAN},
};

/* The bytes before each `=`: "0x48,0x89,0xd8 = movq %rbx, %rax". */
static size_t read_bytes(char *text, size_t size, uint8_t *bytes)
{
    size_t count = 0;
    for (char *line = text, *end; line < text + size; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end)
            break;
        while (line + 4 <= end && line[0] == '0' && line[1] == 'x') {
            bytes[count++] = (uint8_t)strtoul(line, NULL, 16);
            line += 4;
            line += *line == ',';
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: capstone ARCHITECTURES FILE ROUNDS");
    size_t size;
    char *text = read_file(argv[2], &size);
    uint8_t *bytes = allocate(size);
    size_t count = read_bytes(text, size, bytes);
    checksum_t sum = checksum_number(CHECKSUM_START, count);
    for (size_t rounds = parse_number(argv[3]); rounds; rounds--) {
        char list[200];
        snprintf(list, sizeof list, "%s", argv[1]);
        for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
            const struct machine *machine = machines;
            while (strcmp(machine->name, name))
                if (++machine == machines + sizeof machines / sizeof *machines)
                    die("'%s' is no architecture here", name);
            csh handle;
            if (cs_open(machine->arch, machine->mode, &handle) != CS_ERR_OK)
                die("cannot open %s", name);
            cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
            cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
            cs_insn *insn = cs_malloc(handle);
            const uint8_t *code = bytes;
            size_t left = count;
            uint64_t address = 0x1000;
            while (cs_disasm_iter(handle, &code, &left, &address, insn)) {
                sum = checksum_number(sum, insn->id + ((uint64_t)insn->size << 32));
                sum = checksum_bytes(sum, insn->op_str, strlen(insn->op_str));
                if (insn->id && insn->detail)
                    sum = checksum_number(sum, insn->detail->groups_count + ((uint64_t)insn->detail->regs_read_count << 8));
            }
            cs_free(insn, 1);
            cs_close(&handle);
        }
    }
    print_checksum(sum);
    return 0;
}
