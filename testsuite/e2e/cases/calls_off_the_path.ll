; Calls that less than a fiftieth of a function's executions reach get the threshold of cold calls, unless they are hot in
; the whole program.
; opt: -passes=pleach-small-callees
target triple = "x86_64-unknown-linux-gnu"

define void @callee(i32 %n) noinline {
entry:
  call void @opaque(i32 %n)
  ret void
}

declare void @opaque(i32)

define void @sampled(i32 %n) !prof !20 {
entry:
  %rare = icmp eq i32 %n, 0
  br i1 %rare, label %once, label %more, !prof !21

once:
  call void @callee(i32 1)
  br label %more

more:
  %seldom = icmp eq i32 %n, 1
  br i1 %seldom, label %sometimes, label %exit, !prof !22

sometimes:
  call void @callee(i32 2)
  br label %exit

exit:
  call void @callee(i32 3)
  ret void
}

define void @often(i32 %n) !prof !23 {
entry:
  %rare = icmp eq i32 %n, 0
  br i1 %rare, label %once, label %exit, !prof !21

once:
  call void @callee(i32 4)
  br label %exit

exit:
  ret void
}

!llvm.module.flags = !{!0}
!0 = !{i32 1, !"ProfileSummary", !1}
!1 = !{!2, !3, !4, !5, !6, !7, !8, !9}
!2 = !{!"ProfileFormat", !"InstrProf"}
!3 = !{!"TotalCount", i64 10000000}
!4 = !{!"MaxCount", i64 1000000}
!5 = !{!"MaxInternalCount", i64 1000000}
!6 = !{!"MaxFunctionCount", i64 1000000}
!7 = !{!"NumCounts", i64 100}
!8 = !{!"NumFunctions", i64 3}
!9 = !{!"DetailedSummary", !10}
!10 = !{!11, !12}
!11 = !{i32 990000, i64 5000, i32 10}
!12 = !{i32 999999, i64 1, i32 90}
!20 = !{!"function_entry_count", i64 1000}
!21 = !{!"branch_weights", i32 1, i32 99}
!22 = !{!"branch_weights", i32 10, i32 90}
!23 = !{!"function_entry_count", i64 1000000}

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
; define void @sampled(i32 %n) !prof !13 {
; entry:
;   switch i32 %n, label %exit [
;     i32 0, label %once
;     i32 1, label %sometimes
;   ], !prof !14
;
; once:                                             ; preds = %entry
;   call void @callee(i32 1) #1
;   br label %exit
;
; sometimes:                                        ; preds = %entry
;   call void @callee(i32 2)
;   br label %exit
;
; exit:                                             ; preds = %once, %entry, %sometimes
;   call void @callee(i32 3)
;   ret void
; }
;
; define void @often(i32 %n) !prof !15 {
; entry:
;   %rare = icmp eq i32 %n, 0
;   br i1 %rare, label %once, label %exit, !prof !16
;
; once:                                             ; preds = %entry
;   call void @callee(i32 4)
;   br label %exit
;
; exit:                                             ; preds = %once, %entry
;   ret void
; }
;
; attributes #0 = { noinline }
; attributes #1 = { "function-inline-threshold"="45" }
;
; !llvm.module.flags = !{!0}
;
; !0 = !{i32 1, !"ProfileSummary", !1}
; !1 = !{!2, !3, !4, !5, !6, !7, !8, !9}
; !2 = !{!"ProfileFormat", !"InstrProf"}
; !3 = !{!"TotalCount", i64 10000000}
; !4 = !{!"MaxCount", i64 1000000}
; !5 = !{!"MaxInternalCount", i64 1000000}
; !6 = !{!"MaxFunctionCount", i64 1000000}
; !7 = !{!"NumCounts", i64 100}
; !8 = !{!"NumFunctions", i64 3}
; !9 = !{!"DetailedSummary", !10}
; !10 = !{!11, !12}
; !11 = !{i32 990000, i64 5000, i32 10}
; !12 = !{i32 999999, i64 1, i32 90}
; !13 = !{!"function_entry_count", i64 1000}
; !14 = !{!"branch_weights", i32 8910, i32 100, i32 990}
; !15 = !{!"function_entry_count", i64 1000000}
; !16 = !{!"branch_weights", i32 1, i32 99}
