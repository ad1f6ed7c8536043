; Two tests, of which both rarely succeed, are joined: the second test's load is guarded, and what follows is executed after
; one branch. Not if both often succeed, if the first one is predictable, if the second one stores, or if the next iteration
; would wait for it.
; opt: -passes=pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare i32 @work(i32)

define i32 @rarely(i1 %c, ptr %p, i32 %x) {
entry:
  br i1 %c, label %test, label %end, !prof !2, !unpredictable !0
test:
  %v = load i32, ptr %p
  %d = icmp ult i32 %v, %x
  br i1 %d, label %both, label %end, !prof !3
both:
  %w = call i32 @work(i32 %v)
  br label %end
end:
  %r = phi i32 [ %x, %entry ], [ %v, %test ], [ %w, %both ]
  ret i32 %r
}

define void @turned(i1 %c, ptr %p, i32 %x) {
entry:
  br i1 %c, label %end, label %test, !prof !2, !unpredictable !0
test:
  %v = load i32, ptr %p
  %d = icmp ult i32 %v, %x
  br i1 %d, label %end, label %both, !prof !4
both:
  call i32 @work(i32 %v)
  br label %end
end:
  ret void
}

define void @often(i1 %c, ptr %p, i32 %x) {
entry:
  br i1 %c, label %test, label %end, !prof !2, !unpredictable !0
test:
  %v = load i32, ptr %p
  %d = icmp ult i32 %v, %x
  br i1 %d, label %both, label %end, !prof !4
both:
  call i32 @work(i32 %v)
  br label %end
end:
  ret void
}

define void @predictable(i1 %c, ptr %p, i32 %x) {
entry:
  br i1 %c, label %test, label %end, !prof !2, !unpredictable !1
test:
  %v = load i32, ptr %p
  %d = icmp ult i32 %v, %x
  br i1 %d, label %both, label %end, !prof !3
both:
  call i32 @work(i32 %v)
  br label %end
end:
  ret void
}

define void @stores(i1 %c, ptr %p, i32 %x) {
entry:
  br i1 %c, label %test, label %end, !prof !2, !unpredictable !0
test:
  store i32 %x, ptr %p
  %d = icmp ult i32 9, %x
  br i1 %d, label %both, label %end, !prof !3
both:
  call i32 @work(i32 %x)
  br label %end
end:
  ret void
}

; The next iteration waits for what the tests choose: both loads would be in its way.
define i32 @automaton(ptr %states, i32 %n) {
entry:
  br label %loop
loop:
  %s = phi i32 [ 0, %entry ], [ %next, %step ]
  %i = phi i32 [ 0, %entry ], [ %i.next, %step ]
  %go = getelementptr [2 x i32], ptr %states, i32 %s
  %t = load i32, ptr %go
  %c = icmp slt i32 %t, 0
  br i1 %c, label %other, label %step, !prof !2, !unpredictable !0
other:
  %fail = getelementptr i8, ptr %go, i64 4
  %f = load i32, ptr %fail
  %there = getelementptr [2 x i32], ptr %states, i32 %f
  %u = load i32, ptr %there
  %d = icmp slt i32 %u, 0
  br i1 %d, label %none, label %step, !prof !3
none:
  %w = call i32 @work(i32 %f)
  br label %step
step:
  %next = phi i32 [ %t, %loop ], [ %u, %other ], [ %w, %none ]
  %i.next = add i32 %i, 1
  %done = icmp eq i32 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  ret i32 %next
}

!0 = !{i32 450}
!1 = !{i32 10}
!2 = !{!"branch_weights", i32 50, i32 50}
!3 = !{!"branch_weights", i32 10, i32 90}
!4 = !{!"branch_weights", i32 90, i32 10}

; expected:
; @pleach.zeros = private unnamed_addr constant [16 x i8] zeroinitializer, align 16
;
; declare i32 @work(i32)
;
; define i32 @rarely(i1 %c, ptr %p, i32 %x) {
; entry:
;   %0 = select i1 %c, ptr %p, ptr @pleach.zeros, !prof !0, !unpredictable !1
;   %v = load i32, ptr %0, align 4
;   %d = icmp ult i32 %v, %x
;   %1 = select i1 %c, i32 %v, i32 %x, !prof !0, !unpredictable !1
;   %2 = freeze i1 %d
;   %3 = and i1 %c, %2
;   br i1 %3, label %both, label %end, !prof !2, !unpredictable !3
;
; both:                                             ; preds = %entry
;   %w = call i32 @work(i32 %v)
;   br label %end
;
; end:                                              ; preds = %entry, %both
;   %r = phi i32 [ %1, %entry ], [ %w, %both ]
;   ret i32 %r
; }
;
; define void @turned(i1 %c, ptr %p, i32 %x) {
; entry:
;   %0 = select i1 %c, ptr @pleach.zeros, ptr %p, !prof !0, !unpredictable !1
;   %v = load i32, ptr %0, align 4
;   %d = icmp ult i32 %v, %x
;   %1 = xor i1 %c, true
;   %2 = xor i1 %d, true
;   %3 = freeze i1 %2
;   %4 = and i1 %1, %3
;   br i1 %4, label %both, label %end, !prof !2, !unpredictable !3
;
; both:                                             ; preds = %entry
;   %5 = call i32 @work(i32 %v)
;   br label %end
;
; end:                                              ; preds = %entry, %both
;   ret void
; }
;
; define void @often(i1 %c, ptr %p, i32 %x) {
; entry:
;   br i1 %c, label %test, label %end, !prof !0, !unpredictable !1
;
; test:                                             ; preds = %entry
;   %v = load i32, ptr %p, align 4
;   %d = icmp ult i32 %v, %x
;   br i1 %d, label %both, label %end, !prof !4
;
; both:                                             ; preds = %test
;   %0 = call i32 @work(i32 %v)
;   br label %end
;
; end:                                              ; preds = %both, %test, %entry
;   ret void
; }
;
; define void @predictable(i1 %c, ptr %p, i32 %x) {
; entry:
;   br i1 %c, label %test, label %end, !prof !0, !unpredictable !5
;
; test:                                             ; preds = %entry
;   %v = load i32, ptr %p, align 4
;   %d = icmp ult i32 %v, %x
;   br i1 %d, label %both, label %end, !prof !6
;
; both:                                             ; preds = %test
;   %0 = call i32 @work(i32 %v)
;   br label %end
;
; end:                                              ; preds = %both, %test, %entry
;   ret void
; }
;
; define void @stores(i1 %c, ptr %p, i32 %x) {
; entry:
;   br i1 %c, label %test, label %end, !prof !0, !unpredictable !1
;
; test:                                             ; preds = %entry
;   store i32 %x, ptr %p, align 4
;   %d = icmp ult i32 9, %x
;   br i1 %d, label %both, label %end, !prof !6
;
; both:                                             ; preds = %test
;   %0 = call i32 @work(i32 %x)
;   br label %end
;
; end:                                              ; preds = %both, %test, %entry
;   ret void
; }
;
; define i32 @automaton(ptr %states, i32 %n) {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %step, %entry
;   %s = phi i32 [ 0, %entry ], [ %next, %step ]
;   %i = phi i32 [ 0, %entry ], [ %i.next, %step ]
;   %go = getelementptr [2 x i32], ptr %states, i32 %s
;   %t = load i32, ptr %go, align 4
;   %c = icmp slt i32 %t, 0
;   br i1 %c, label %other, label %step, !prof !0, !unpredictable !1
;
; other:                                            ; preds = %loop
;   %fail = getelementptr i8, ptr %go, i64 4
;   %f = load i32, ptr %fail, align 4
;   %there = getelementptr [2 x i32], ptr %states, i32 %f
;   %u = load i32, ptr %there, align 4
;   %d = icmp slt i32 %u, 0
;   br i1 %d, label %none, label %step, !prof !6
;
; none:                                             ; preds = %other
;   %w = call i32 @work(i32 %f)
;   br label %step
;
; step:                                             ; preds = %none, %other, %loop
;   %next = phi i32 [ %t, %loop ], [ %u, %other ], [ %w, %none ]
;   %i.next = add i32 %i, 1
;   %done = icmp eq i32 %i.next, %n
;   br i1 %done, label %end, label %loop
;
; end:                                              ; preds = %step
;   ret i32 %next
; }
;
; !0 = !{!"branch_weights", i32 50, i32 50}
; !1 = !{i32 450}
; !2 = !{!"branch_weights", i32 52429, i32 996148}
; !3 = !{i32 1}
; !4 = !{!"branch_weights", i32 90, i32 10}
; !5 = !{i32 10}
; !6 = !{!"branch_weights", i32 10, i32 90}
