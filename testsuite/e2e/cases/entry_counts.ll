; A function is entered at least as often as it is called: `first` 1000 times, and therefore `second`, too. What was
; executed rarely or not at all keeps its count, and what is called from unsampled code, too.
; opt: -passes=pleach-entry-counts
define void @main(i1 %c) !prof !0 {
entry:
  br label %loop
loop:
  call void @first()
  call void @rare()
  call void @cold()
  call void @even()
  br i1 %c, label %loop, label %end, !prof !1
end:
  ret void
}

define void @second() !prof !2 {
  ret void
}

define void @first() !prof !2 {
  call void @second()
  call void @inlined()
  ret void
}

define void @inlined() !prof !3 {
  ret void
}

define void @rare() !prof !4 {
  ret void
}

define void @cold() cold !prof !3 {
  ret void
}

define void @even() !prof !0 {
  call void @odd()
  ret void
}

define void @odd() !prof !2 {
  call void @even()
  ret void
}

define void @unsampled() "pleach-unsampled" !prof !5 {
  call void @leaf()
  ret void
}

define void @leaf() !prof !2 {
  ret void
}

!0 = !{!"function_entry_count", i64 10}
!1 = !{!"branch_weights", i32 99, i32 1}
!2 = !{!"function_entry_count", i64 700}
!3 = !{!"function_entry_count", i64 0}
!4 = !{!"function_entry_count", i64 1}
!5 = !{!"function_entry_count", i64 5000}

; expected:
; define void @main(i1 %c) !prof !0 {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   call void @first()
;   call void @rare()
;   call void @cold()
;   call void @even()
;   br i1 %c, label %loop, label %end, !prof !1
;
; end:                                              ; preds = %loop
;   ret void
; }
;
; define void @second() !prof !2 {
;   ret void
; }
;
; define void @first() !prof !2 {
;   call void @second()
;   call void @inlined()
;   ret void
; }
;
; define void @inlined() !prof !2 {
;   ret void
; }
;
; define void @rare() !prof !3 {
;   ret void
; }
;
; ; Function Attrs: cold
; define void @cold() #0 !prof !4 {
;   ret void
; }
;
; define void @even() !prof !5 {
;   call void @odd()
;   ret void
; }
;
; define void @odd() !prof !2 {
;   call void @even()
;   ret void
; }
;
; define void @unsampled() #1 !prof !6 {
;   call void @leaf()
;   ret void
; }
;
; define void @leaf() !prof !7 {
;   ret void
; }
;
; attributes #0 = { cold }
; attributes #1 = { "pleach-unsampled" }
;
; !0 = !{!"function_entry_count", i64 10}
; !1 = !{!"branch_weights", i32 99, i32 1}
; !2 = !{!"function_entry_count", i64 1000}
; !3 = !{!"function_entry_count", i64 1}
; !4 = !{!"function_entry_count", i64 0}
; !5 = !{!"function_entry_count", i64 1700}
; !6 = !{!"function_entry_count", i64 5000}
; !7 = !{!"function_entry_count", i64 700}
