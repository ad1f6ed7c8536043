// A function with a symbol within, over which it falls through, as musl's memcpy has.
        .text
        .globl sum_to
        .type sum_to,@function
sum_to: xorl %eax, %eax
        jmp sum_loop
skip:   addl $1, %eax
        .type sum_loop,@function
sum_loop:
        addl %edi, %eax
        subl $1, %edi
        jg skip
        ret
        .section .note.GNU-stack,"",@progbits
