// Assembly that the same flags must let through.
        .text
        .globl plain
plain:  ret
        .section .note.GNU-stack,"",@progbits
