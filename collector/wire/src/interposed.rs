//! The functions of libc that the sampler interposes, besides those that start programs.
//!
//! The stub library exports all of them. In a process without the sampler, most lead to their next definitions; with it,
//! they lead to the sampler's versions.

/// Calls a macro with the names of all functions, in order.
#[macro_export]
macro_rules! for_each_interposed {
    ($call:ident) => {
        $call! {
            _Exit __longjmp_chk __sigaction __sysv_signal _exit _longjmp bsd_signal close close_range closefrom dlclose
            dup2 dup3 epoll_pwait epoll_pwait2 longjmp mmap mmap64 ppoll prctl prlimit prlimit64 pselect pthread_attr_setsigmask_np pthread_create
            pthread_sigmask ptrace setcontext seteuid setresuid setreuid setrlimit setrlimit64 setuid shmat sigaction sigaltstack sigignore siglongjmp signal
            signalfd sigpending sigprocmask sigset sigsuspend sigtimedwait sigwait sigwaitinfo ssignal swapcontext syscall
            sysv_signal thrd_create
        }
    };
}

macro_rules! define_functions {
    ($($name:ident)*) => {
        /// An interposed function, named as it is.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Function { $($name),* }

        /// All names, with a zero byte after each.
        pub const NAMES: &str = concat!($(stringify!($name), "\0"),*);

        /// Number of functions.
        pub const COUNT: usize = [$(Function::$name),*].len();
    };
}

for_each_interposed!(define_functions);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        let names: Vec<&str> = NAMES.split_terminator('\0').collect();
        assert_eq!(names.len(), COUNT);
        assert_eq!(names[Function::sigaction as usize], "sigaction");
        assert_eq!(names[Function::thrd_create as usize], "thrd_create");
    }
}
