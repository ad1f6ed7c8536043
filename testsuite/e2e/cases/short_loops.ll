; A loop that runs twice by the profile is peeled where stores cannot be masked: LLVM would predicate every store. How often
; the rest runs is unknown, so that it is vectorised as without a profile. A loop that runs twelve times counts as one of
; sixteen, which LLVM vectorises as without a profile, or as one of many if its elements are bytes, of which a register
; holds more than twelve. One that runs a hundred times is left to LLVM, and so is the same short loop where the target has
; masked stores, and one that the user wants vectorised. One that the user wants not to be unrolled is not peeled.
; A loop that runs long on the average, but whose visits mostly end after one or two iterations, is peeled too; the exits
; get the weights that were seen, the rest the iterations that are left. What is left of a peeled loop may be unrolled if
; nearly all visits end within the peeled iterations.
; opt: -passes=function(pleach-short-loops)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @short(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret void
}

define void @steady(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !40

exit:
  ret void
}

define void @medium(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !9

exit:
  ret void
}

define void @bytes(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i8, ptr %p, i32 %i
  store i8 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !9

exit:
  ret void
}

define void @not_unrolled(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !20

exit:
  ret void
}

define void @long(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !2

exit:
  ret void
}

define void @masked(ptr %p, i32 %n) "target-features"="+avx2" !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1

exit:
  ret void
}

define i32 @mostly_short(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %added, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  %value = load i32, ptr %a
  %added = add i32 %sum, %value
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !9, !llvm.loop !30

exit:
  ret i32 %added
}

define void @wanted(ptr %p, i32 %n) !prof !0 {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  store i32 0, ptr %a
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !3

exit:
  ret void
}

!0 = !{!"function_entry_count", i64 1000}
!1 = !{!"branch_weights", i32 1000, i32 1000}
!2 = !{!"branch_weights", i32 99000, i32 1000}
!3 = distinct !{!3, !4}
!4 = !{!"llvm.loop.vectorize.width", i32 4}
!9 = !{!"branch_weights", i32 11000, i32 1000}

!20 = distinct !{!20, !21}
!21 = !{!"llvm.loop.unroll.disable"}
!30 = distinct !{!30, !31}
!31 = !{!"pleach.loop.short-visits", i32 500, i32 900, i32 90}
!40 = distinct !{!40, !41}
!41 = !{!"pleach.loop.steady"}

; expected:
; define void @short(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop.peel.begin
;
; loop.peel.begin:                                  ; preds = %entry
;   br label %loop.peel
;
; loop.peel:                                        ; preds = %loop.peel.begin
;   store i32 0, ptr %p, align 4
;   %more.peel = icmp ugt i32 %n, 1
;   br i1 %more.peel, label %loop.peel.next, label %exit, !prof !1
;
; loop.peel.next:                                   ; preds = %loop.peel
;   br label %loop.peel2
;
; loop.peel2:                                       ; preds = %loop.peel.next
;   %a.peel3 = getelementptr i8, ptr %p, i64 4
;   store i32 0, ptr %a.peel3, align 4
;   %more.peel5.not = icmp eq i32 %n, 2
;   br i1 %more.peel5.not, label %exit, label %loop.peel.next1, !prof !1
;
; loop.peel.next1:                                  ; preds = %loop.peel2
;   br label %loop.peel.next6
;
; loop.peel.next6:                                  ; preds = %loop.peel.next1
;   br label %entry.peel.newph
;
; entry.peel.newph:                                 ; preds = %loop.peel.next6
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry.peel.newph
;   %i = phi i32 [ 2, %entry.peel.newph ], [ %next, %loop ]
;   %0 = sext i32 %i to i64
;   %a = getelementptr i32, ptr %p, i64 %0
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit.loopexit, !prof !1, !llvm.loop !2
;
; exit.loopexit:                                    ; preds = %loop
;   br label %exit
;
; exit:                                             ; preds = %exit.loopexit, %loop.peel2, %loop.peel
;   ret void
; }
;
; define void @steady(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop.peel.begin
;
; loop.peel.begin:                                  ; preds = %entry
;   br label %loop.peel
;
; loop.peel:                                        ; preds = %loop.peel.begin
;   store i32 0, ptr %p, align 4
;   %more.peel = icmp ugt i32 %n, 1
;   br i1 %more.peel, label %loop.peel.next, label %exit, !prof !1
;
; loop.peel.next:                                   ; preds = %loop.peel
;   br label %loop.peel2
;
; loop.peel2:                                       ; preds = %loop.peel.next
;   %a.peel3 = getelementptr i8, ptr %p, i64 4
;   store i32 0, ptr %a.peel3, align 4
;   %more.peel5.not = icmp eq i32 %n, 2
;   br i1 %more.peel5.not, label %exit, label %loop.peel.next1, !prof !1
;
; loop.peel.next1:                                  ; preds = %loop.peel2
;   br label %loop.peel.next6
;
; loop.peel.next6:                                  ; preds = %loop.peel.next1
;   br label %entry.peel.newph
;
; entry.peel.newph:                                 ; preds = %loop.peel.next6
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry.peel.newph
;   %i = phi i32 [ 2, %entry.peel.newph ], [ %next, %loop ]
;   %0 = sext i32 %i to i64
;   %a = getelementptr i32, ptr %p, i64 %0
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit.loopexit, !prof !1, !llvm.loop !6
;
; exit.loopexit:                                    ; preds = %loop
;   br label %exit
;
; exit:                                             ; preds = %exit.loopexit, %loop.peel2, %loop.peel
;   ret void
; }
;
; define void @medium(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !7, !llvm.loop !8
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @bytes(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i8, ptr %p, i32 %i
;   store i8 0, ptr %a, align 1
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !7, !llvm.loop !10
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @not_unrolled(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !12
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @long(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !14
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define void @masked(ptr %p, i32 %n) #0 !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !1
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; define i32 @mostly_short(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop.peel.begin
;
; loop.peel.begin:                                  ; preds = %entry
;   br label %loop.peel
;
; loop.peel:                                        ; preds = %loop.peel.begin
;   %value.peel = load i32, ptr %p, align 4
;   %more.peel = icmp ugt i32 %n, 1
;   br i1 %more.peel, label %loop.peel.next, label %exit, !prof !15
;
; loop.peel.next:                                   ; preds = %loop.peel
;   br label %loop.peel2
;
; loop.peel2:                                       ; preds = %loop.peel.next
;   %a.peel3 = getelementptr i8, ptr %p, i64 4
;   %value.peel4 = load i32, ptr %a.peel3, align 4
;   %added.peel5 = add i32 %value.peel, %value.peel4
;   %more.peel7.not = icmp eq i32 %n, 2
;   br i1 %more.peel7.not, label %exit, label %loop.peel.next1, !prof !16
;
; loop.peel.next1:                                  ; preds = %loop.peel2
;   br label %loop.peel.next8
;
; loop.peel.next8:                                  ; preds = %loop.peel.next1
;   br label %entry.peel.newph
;
; entry.peel.newph:                                 ; preds = %loop.peel.next8
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry.peel.newph
;   %i = phi i32 [ 2, %entry.peel.newph ], [ %next, %loop ]
;   %sum = phi i32 [ %added.peel5, %entry.peel.newph ], [ %added, %loop ]
;   %0 = sext i32 %i to i64
;   %a = getelementptr i32, ptr %p, i64 %0
;   %value = load i32, ptr %a, align 4
;   %added = add i32 %sum, %value
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit.loopexit, !prof !17, !llvm.loop !18
;
; exit.loopexit:                                    ; preds = %loop
;   %added.lcssa9 = phi i32 [ %added, %loop ]
;   br label %exit
;
; exit:                                             ; preds = %exit.loopexit, %loop.peel2, %loop.peel
;   %added.lcssa = phi i32 [ %added.peel5, %loop.peel2 ], [ %value.peel, %loop.peel ], [ %added.lcssa9, %exit.loopexit ]
;   ret i32 %added.lcssa
; }
;
; define void @wanted(ptr %p, i32 %n) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   store i32 0, ptr %a, align 4
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %exit, !prof !1, !llvm.loop !20
;
; exit:                                             ; preds = %loop
;   ret void
; }
;
; attributes #0 = { "target-features"="+avx2" }
;
; !0 = !{!"function_entry_count", i64 1000}
; !1 = !{!"branch_weights", i32 1000, i32 1000}
; !2 = distinct !{!2, !3, !4, !5}
; !3 = !{!"llvm.loop.peeled.count", i32 2}
; !4 = !{!"llvm.loop.estimated_trip_count", i32 0}
; !5 = !{!"llvm.loop.unroll.runtime.disable", i32 0}
; !6 = distinct !{!6, !3, !4}
; !7 = !{!"branch_weights", i32 11000, i32 1000}
; !8 = distinct !{!8, !9}
; !9 = !{!"llvm.loop.estimated_trip_count", i32 16}
; !10 = distinct !{!10, !11}
; !11 = !{!"llvm.loop.estimated_trip_count", i32 1024}
; !12 = distinct !{!12, !13, !11}
; !13 = !{!"llvm.loop.unroll.disable"}
; !14 = !{!"branch_weights", i32 99000, i32 1000}
; !15 = !{!"branch_weights", i32 501, i32 501}
; !16 = !{!"branch_weights", i32 401, i32 101}
; !17 = !{!"branch_weights", i32 89000, i32 1000}
; !18 = distinct !{!18, !3, !19}
; !19 = !{!"llvm.loop.estimated_trip_count", i32 90}
; !20 = distinct !{!20, !21}
; !21 = !{!"llvm.loop.vectorize.width", i32 4}
