//! Jumps out of signal handlers. They unblock ticks before they leave the handler's stack, where a pending one would then
//! come on top of the frame of the program's own signal. So the first such jump on a stack without room for both stops
//! the thread's ticks.

use super::stacks;
use crate::next_symbol::NextSymbol;
use core::arch::naked_asm;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

type Jump = unsafe extern "C" fn();

macro_rules! jumps {
    ($($name:ident $symbol:literal $address:ident)*) => {
        $(
            static $address: AtomicUsize = AtomicUsize::new(0);

            /// Passes the call on by a jump: the next definition compares its stack with that of the target.
            ///
            /// # Safety
            /// As `siglongjmp(3)`.
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(
                    "push rdi",
                    "push rsi",
                    "sub rsp, 8",
                    "call {before_jump}",
                    "add rsp, 8",
                    "pop rsi",
                    "pop rdi",
                    "mov rax, qword ptr [rip + {address}]",
                    "test rax, rax",
                    "jz 2f",
                    "jmp rax",
                    // This libc lacks the function, which then nobody can have called.
                    "2:",
                    "ud2",
                    before_jump = sym stacks::before_jump,
                    address = sym $address,
                )
            }
        )*

        /// Looks the functions up. In a handler there may be no room for that.
        pub fn resolve() {
            $(
                let next = NextSymbol::<Jump>::new($symbol).get();
                $address.store(next.map_or(0, |next| next as usize), Relaxed);
            )*
        }
    };
}

jumps! {
    __longjmp_chk c"__longjmp_chk" CHECKED
    _longjmp c"_longjmp" WITHOUT_MASK
    longjmp c"longjmp" LONG
    siglongjmp c"siglongjmp" WITH_MASK
}
