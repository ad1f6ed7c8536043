; Calls in a function without samples keep LLVM's threshold, wherever it is inlined: a count that guessed iterations
; multiply does not make them hot. Cold ones stay cold, and calls in a function with samples are left alone.
; opt: -passes=pleach-small-callees
target triple = "x86_64-unknown-linux-gnu"

define void @callee(i32 %n) noinline {
entry:
  call void @opaque(i32 %n)
  ret void
}

declare void @opaque(i32)

define void @unsampled(i32 %n) "pleach-unsampled" {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %more ]
  call void @callee(i32 %i)
  call void @opaque(i32 %i)
  %bad = icmp eq i32 %i, %n
  br i1 %bad, label %fail, label %more, !prof !0

more:
  %next = add i32 %i, 1
  %done = icmp eq i32 %next, 100
  br i1 %done, label %exit, label %loop

fail:
  call void @callee(i32 -1)
  unreachable

exit:
  ret void
}

define void @sampled(i32 %n) {
entry:
  call void @callee(i32 %n)
  ret void
}

!0 = !{!"branch_weights", !"expected", i32 1, i32 100000}

; expected:
; ; Function Attrs: noinline
; define void @callee(i32 %n) #0 {
; entry:
;   call void @opaque(i32 %n)
;   ret void
; }
;
; declare void @opaque(i32)
;
; define void @unsampled(i32 %n) #1 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %more, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %more ]
;   call void @callee(i32 %i) #2
;   call void @opaque(i32 %i)
;   %bad = icmp eq i32 %i, %n
;   br i1 %bad, label %fail, label %more, !prof !0
;
; more:                                             ; preds = %loop
;   %next = add i32 %i, 1
;   %done = icmp eq i32 %next, 100
;   br i1 %done, label %exit, label %loop
;
; fail:                                             ; preds = %loop
;   call void @callee(i32 -1) #3
;   unreachable
;
; exit:                                             ; preds = %more
;   ret void
; }
;
; define void @sampled(i32 %n) {
; entry:
;   call void @callee(i32 %n)
;   ret void
; }
;
; attributes #0 = { noinline }
; attributes #1 = { "pleach-unsampled" }
; attributes #2 = { "function-inline-threshold"="225" }
; attributes #3 = { "function-inline-threshold"="45" }
;
; !0 = !{!"branch_weights", !"expected", i32 1, i32 100000}
