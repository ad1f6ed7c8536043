; Less is inlined into a function that was not executed, also where the source asks for inlining, except in its loops,
; and in functions that these call and that were not executed either.
; Calls of cold functions are left to LLVM.
; opt: -passes=pleach-small-callees
target triple = "x86_64-unknown-linux-gnu"

define void @callee(i32 %n) noinline {
entry:
  call void @opaque(i32 %n)
  ret void
}

define void @hinted(i32 %n) noinline inlinehint {
entry:
  call void @opaque(i32 %n)
  ret void
}

define void @fails(i32 %n) noinline cold {
entry:
  call void @opaque(i32 %n)
  ret void
}

declare void @opaque(i32)

define void @not_executed(i32 %n) "pleach-not-executed" "pleach-unsampled" {
entry:
  call void @callee(i32 %n)
  call void @hinted(i32 %n)
  call void @fails(i32 %n)
  call void @opaque(i32 %n)
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void @callee(i32 %i)
  call void @hinted(i32 %i)
  call void @in_loop(i32 %i)
  %next = add i32 %i, 1
  %done = icmp eq i32 %next, %n
  br i1 %done, label %exit, label %loop

exit:
  ret void
}

define void @in_loop(i32 %n) noinline "pleach-not-executed" "pleach-unsampled" {
entry:
  call void @callee(i32 %n)
  call void @hinted(i32 %n)
  call void @deeper(i32 %n)
  ret void
}

define void @deeper(i32 %n) noinline "pleach-not-executed" "pleach-unsampled" {
entry:
  call void @callee(i32 %n)
  ret void
}

define void @elsewhere(i32 %n) noinline "pleach-not-executed" "pleach-unsampled" {
entry:
  call void @callee(i32 %n)
  call void @in_loop(i32 %n)
  ret void
}

; expected:
; ; Function Attrs: noinline
; define void @callee(i32 %n) #0 {
; entry:
;   call void @opaque(i32 %n)
;   ret void
; }
;
; ; Function Attrs: inlinehint noinline
; define void @hinted(i32 %n) #1 {
; entry:
;   call void @opaque(i32 %n)
;   ret void
; }
;
; ; Function Attrs: cold noinline
; define void @fails(i32 %n) #2 {
; entry:
;   call void @opaque(i32 %n)
;   ret void
; }
;
; declare void @opaque(i32)
;
; define void @not_executed(i32 %n) #3 {
; entry:
;   call void @callee(i32 %n) #5
;   call void @hinted(i32 %n) #5
;   call void @fails(i32 %n)
;   call void @opaque(i32 %n)
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   call void @callee(i32 %i) #6
;   call void @hinted(i32 %i)
;   call void @in_loop(i32 %i) #6
;   %next = add i32 %i, 1
;   %done = icmp eq i32 %next, %n
;   br i1 %done, label %exit, label %loop
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; ; Function Attrs: noinline
; define void @in_loop(i32 %n) #4 {
; entry:
;   call void @callee(i32 %n) #6
;   call void @hinted(i32 %n)
;   call void @deeper(i32 %n) #6
;   ret void
; }
;
; ; Function Attrs: noinline
; define void @deeper(i32 %n) #4 {
; entry:
;   call void @callee(i32 %n) #6
;   ret void
; }
;
; ; Function Attrs: noinline
; define void @elsewhere(i32 %n) #4 {
; entry:
;   call void @callee(i32 %n) #5
;   call void @in_loop(i32 %n) #5
;   ret void
; }
;
; attributes #0 = { noinline }
; attributes #1 = { inlinehint noinline }
; attributes #2 = { cold noinline }
; attributes #3 = { "pleach-unsampled" }
; attributes #4 = { noinline "pleach-unsampled" }
; attributes #5 = { "function-inline-threshold"="150" }
; attributes #6 = { "function-inline-threshold"="225" }
