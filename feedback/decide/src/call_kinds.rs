//! Functions of the C library whose calls end paths or come back twice, by name.

/// What a callee's name says about its calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// Nothing.
    Ordinary,
    /// Ends the process or the thread without unwinding, in a callee that is usually not instrumented. `exit` is not among them: it runs the
    /// runtime's handler.
    EndsThread,
    /// Saves an environment that a `longjmp` comes back to.
    Setjmp,
    /// Goes back to an environment.
    Longjmp,
    /// Returns in the child and in the parent.
    Vfork,
}

/// The kind of calls of a function with this linkage name.
pub fn kind_of_call(name: &[u8]) -> CallKind {
    match name {
        b"abort" | b"_exit" | b"_Exit" | b"quick_exit" | b"pthread_exit" | b"thrd_exit" => CallKind::EndsThread,
        b"__assert_fail" | b"__assert_perror_fail" | b"__assert" | b"_ZSt9terminatev" => CallKind::EndsThread,
        b"__stack_chk_fail" | b"__chk_fail" | b"__fortify_fail" => CallKind::EndsThread,
        b"setjmp" | b"_setjmp" | b"sigsetjmp" | b"__sigsetjmp" => CallKind::Setjmp,
        b"longjmp" | b"_longjmp" | b"siglongjmp" | b"__longjmp_chk" => CallKind::Longjmp,
        b"vfork" => CallKind::Vfork,
        _ => CallKind::Ordinary,
    }
}
