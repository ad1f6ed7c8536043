; Functions with counts, as `use` leaves them before code generation: what placement does with them depends on no recording.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @work(i32)
declare void @fail()

; A small loop of a thousand iterations a call.
define void @often(i32 %n) noinline !prof !20 {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  tail call void @work(i32 %i)
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !30
exit:
  ret void
}

; The same with what its author wants. It calls the other.
define void @asked(i32 %n) !prof !20 {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  tail call void @work(i32 %i)
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !30, !llvm.loop !40
exit:
  tail call void @often(i32 %n)
  ret void
}

; A few iterations, seldom. What never ran is to be split off.
define void @seldom(i32 %n) !prof !21 {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  tail call void @work(i32 %i)
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit, !prof !31
exit:
  %failed = icmp eq i32 %n, 77
  br i1 %failed, label %never, label %return, !prof !32
never:
  tail call void @fail()
  tail call void @fail()
  br label %return
return:
  ret void
}

; Of this the profile knows nothing.
define void @unknown(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  tail call void @work(i32 %i)
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

!llvm.module.flags = !{!0, !1}
!0 = !{i32 7, !"pleach.placement", i32 2}
!1 = !{i32 1, !"ProfileSummary", !2}
!2 = !{!3, !4, !5, !6, !7, !8, !9, !10}
!3 = !{!"ProfileFormat", !"InstrProf"}
!4 = !{!"TotalCount", i64 3000000}
!5 = !{!"MaxCount", i64 1000000}
!6 = !{!"MaxInternalCount", i64 1000000}
!7 = !{!"MaxFunctionCount", i64 1000}
!8 = !{!"NumCounts", i64 9}
!9 = !{!"NumFunctions", i64 3}
!10 = !{!"DetailedSummary", !11}
!11 = !{!12, !13}
!12 = !{i32 990000, i64 1000000, i32 2}
!13 = !{i32 999999, i64 1, i32 9}
!20 = !{!"function_entry_count", i64 1000}
!21 = !{!"function_entry_count", i64 2}
!30 = !{!"branch_weights", i32 999, i32 1}
!31 = !{!"branch_weights", i32 2, i32 1}
!32 = !{!"branch_weights", i32 0, i32 1000}
!40 = distinct !{!40, !41}
!41 = !{!"llvm.loop.align", i32 64}
