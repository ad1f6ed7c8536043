//! Interpreters: with computed gotos, and with guaranteed tail calls.

use super::values::{Type, Variable};
use super::{Callable, Generator};

const OPERATIONS: u32 = 8;
/// The state that each operation changes.
const REGISTERS: [(&str, Type); 3] = [("a", Type::U64), ("b", Type::U32), ("d", Type::Double)];

impl Generator {
    /// One of each kind, which take a number of steps and the first register.
    pub(super) fn interpreters(&mut self) {
        let outer = self.variables.len();
        for (name, ty) in REGISTERS {
            self.variables.push(Variable {
                name: name.into(),
                ty,
                is_constant: false,
            });
        }
        self.gotos();
        self.tail_calls();
        self.variables.truncate(outer);
        for name in ["gotos", "calls"] {
            self.callable.push(Callable {
                call: name.into(),
                parameters: vec![Type::U8, Type::U64],
                returns: Type::U64,
            });
        }
    }

    fn gotos(&mut self) {
        self.line("");
        self.line("static uint64_t gotos(uint8_t steps, uint64_t a) {");
        let labels: Vec<String> = (0..OPERATIONS).map(|number| format!("&&op_{number}")).collect();
        self.line(&format!(
            "    static const void *const labels[] = {{{}}};",
            labels.join(", ")
        ));
        self.line("    uint32_t b = 1;");
        self.line("    double d = 0.5;");
        self.line("    uint32_t at = 0;");
        self.line("#define NEXT if (steps-- == 0) return a ^ b; goto *labels[g_bytes[at++ & 63] & 7]");
        self.line("    NEXT;");
        for number in 0..OPERATIONS {
            self.line(&format!("op_{number}:"));
            self.operation();
            self.line("    NEXT;");
        }
        self.line("}");
    }

    fn tail_calls(&mut self) {
        let parameters = "uint32_t at, uint8_t steps, uint64_t a, uint32_t b, double d";
        self.line("");
        self.line(&format!("using Operation = uint64_t({parameters});"));
        self.line("extern Operation *const operations[8];");
        self.line("#define TAIL \\");
        self.line("    if (steps-- == 0) return a ^ b; \\");
        self.line("    [[clang::musttail]] return operations[g_bytes[at & 63] & 7](at + 1, steps, a, b, d)");
        for number in 0..OPERATIONS {
            self.line(&format!("static uint64_t tail_{number}({parameters}) {{"));
            self.operation();
            self.line("    TAIL;");
            self.line("}");
        }
        let names: Vec<String> = (0..OPERATIONS).map(|number| format!("tail_{number}")).collect();
        self.line(&format!("Operation *const operations[8] = {{{}}};", names.join(", ")));
        self.line("static uint64_t calls(uint8_t steps, uint64_t a) { return tail_0(0, steps, a, 1, 0.5); }");
    }

    fn operation(&mut self) {
        self.indent += 1;
        for _ in 0..1 + self.below(2) {
            let (name, ty) = self.pick(&REGISTERS);
            let value = self.value(ty, 2);
            let condition = match self.one_in(3) {
                true => format!("if ({}) ", self.condition(1)),
                false => String::new(),
            };
            self.line(&format!("{condition}{name} = {value};"));
        }
        if self.one_in(3) {
            self.line("at += b & 3;");
        }
        self.indent -= 1;
    }
}
