; Comparisons with frequent cases come before a switch, with the values of φs and the weights that are left. Ranges of
; cases are compared at once; a default destination that is impossible is not reached; what is predicted, rare, of three
; cases, for size or without tables is left alone.
; opt: -passes=pleach-switches -pleach-random=1
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @phis(i8 %c) !prof !20 {
entry:
  switch i8 %c, label %other [
    i8 37, label %a
    i8 42, label %b
    i8 47, label %b
    i8 45, label %end
    i8 46, label %d
  ], !prof !21, !pleach.switch !30

a:
  br label %end

b:
  %b.value = phi i32 [ 7, %entry ], [ 7, %entry ]
  br label %end

d:
  br label %end

other:
  br label %end

end:
  %value = phi i32 [ 1, %a ], [ %b.value, %b ], [ 9, %entry ], [ 3, %d ], [ 4, %other ]
  ret i32 %value
}

define i32 @range(i32 %x) !prof !20 {
  switch i32 %x, label %impossible [
    i32 -1, label %a
    i32 0, label %a
    i32 3, label %b
    i32 4, label %b
    i32 6, label %c
    i32 7, label %c
    i32 9, label %d
    i32 10, label %d
  ], !prof !22, !pleach.switch !30

a:
  ret i32 1

b:
  ret i32 2

c:
  ret i32 3

d:
  ret i32 4

impossible:
  unreachable
}

define i32 @of_comparisons(i8 %c) !prof !20 {
  switch i8 %c, label %other [
    i8 37, label %a
    i8 42, label %b
    i8 47, label %d
    i8 45, label %e
  ], !prof !23

a:
  ret i32 1

b:
  ret i32 2

d:
  ret i32 3

e:
  ret i32 4

other:
  ret i32 5
}

define i32 @predicted(i8 %c) !prof !20 {
  switch i8 %c, label %other [
    i8 0, label %a
    i8 1, label %b
    i8 2, label %d
    i8 3, label %e
    i8 4, label %f
    i8 5, label %g
  ], !prof !24, !pleach.switch !31

a:
  ret i32 1

b:
  ret i32 2

d:
  ret i32 3

e:
  ret i32 4

f:
  ret i32 5

g:
  ret i32 6

other:
  ret i32 7
}

define i32 @three(i8 %c) !prof !20 {
  switch i8 %c, label %other [
    i8 37, label %a
    i8 42, label %b
    i8 47, label %d
  ], !prof !25

a:
  ret i32 1

b:
  ret i32 2

d:
  ret i32 3

other:
  ret i32 5
}

define i32 @rare(i8 %c) !prof !26 {
  switch i8 %c, label %other [
    i8 37, label %a
    i8 42, label %b
    i8 47, label %d
    i8 45, label %e
  ], !prof !23

a:
  ret i32 1

b:
  ret i32 2

d:
  ret i32 3

e:
  ret i32 4

other:
  ret i32 5
}

define i32 @for_size(i8 %c) optsize !prof !20 {
  switch i8 %c, label %other [
    i8 37, label %a
    i8 42, label %b
    i8 47, label %d
    i8 45, label %e
  ], !prof !23

a:
  ret i32 1

b:
  ret i32 2

d:
  ret i32 3

e:
  ret i32 4

other:
  ret i32 5
}

define i32 @without_tables(i8 %c) "no-jump-tables"="true" !prof !20 {
  switch i8 %c, label %other [
    i8 37, label %a
    i8 42, label %b
    i8 47, label %d
    i8 45, label %e
  ], !prof !23

a:
  ret i32 1

b:
  ret i32 2

d:
  ret i32 3

e:
  ret i32 4

other:
  ret i32 5
}

!llvm.module.flags = !{!0}
!0 = !{i32 1, !"ProfileSummary", !1}
!1 = !{!2, !3, !4, !5, !6, !7, !8, !9}
!2 = !{!"ProfileFormat", !"InstrProf"}
!3 = !{!"TotalCount", i64 100000}
!4 = !{!"MaxCount", i64 10000}
!5 = !{!"MaxInternalCount", i64 10000}
!6 = !{!"MaxFunctionCount", i64 10000}
!7 = !{!"NumCounts", i64 40}
!8 = !{!"NumFunctions", i64 8}
!9 = !{!"DetailedSummary", !10}
!10 = !{!11, !12}
!11 = !{i32 990000, i64 1000, i32 20}
!12 = !{i32 999999, i64 1, i32 40}
!20 = !{!"function_entry_count", i64 10000}
!21 = !{!"branch_weights", i32 5000, i32 1000, i32 1500, i32 500, i32 1900, i32 0}
!22 = !{!"branch_weights", i32 0, i32 1000, i32 900, i32 1000, i32 1500, i32 2500, i32 2500, i32 300, i32 300}
!23 = !{!"branch_weights", i32 7600, i32 500, i32 900, i32 1000, i32 0}
!24 = !{!"branch_weights", i32 1000, i32 1500, i32 1500, i32 1500, i32 1500, i32 1500, i32 1500}
!25 = !{!"branch_weights", i32 7600, i32 500, i32 900, i32 1000}
!26 = !{!"function_entry_count", i64 10}
!30 = !{i32 600, i32 700}
!31 = !{i32 3, i32 5}

; expected:
; define i32 @phis(i8 %c) !prof !13 {
; entry:
;   %0 = icmp eq i8 %c, 45
;   br i1 %0, label %end, label %1, !prof !14
;
; 1:                                                ; preds = %entry
;   %2 = icmp eq i8 %c, 42
;   br i1 %2, label %b, label %3, !prof !15
;
; 3:                                                ; preds = %1
;   switch i8 %c, label %other [
;     i8 37, label %a
;     i8 46, label %d
;     i8 47, label %b
;   ], !prof !16
;
; a:                                                ; preds = %3
;   br label %end
;
; b:                                                ; preds = %1, %3
;   %b.value = phi i32 [ 7, %1 ], [ 7, %3 ]
;   br label %end
;
; d:                                                ; preds = %3
;   br label %end
;
; other:                                            ; preds = %3
;   br label %end
;
; end:                                              ; preds = %entry, %other, %d, %b, %a
;   %value = phi i32 [ 1, %a ], [ %b.value, %b ], [ 4, %other ], [ 3, %d ], [ 9, %entry ]
;   ret i32 %value
; }
;
; define i32 @range(i32 %x) !prof !13 {
;   %1 = sub i32 %x, 3
;   %2 = icmp ule i32 %1, 1
;   br i1 %2, label %b, label %3, !prof !17
;
; 3:                                                ; preds = %0
;   %4 = sub i32 %x, -1
;   %5 = icmp ule i32 %4, 1
;   br i1 %5, label %a, label %6, !prof !18
;
; 6:                                                ; preds = %3
;   switch i32 %x, label %impossible [
;     i32 7, label %c
;     i32 6, label %c
;     i32 10, label %d
;     i32 9, label %d
;   ], !prof !19
;
; a:                                                ; preds = %3
;   ret i32 1
;
; b:                                                ; preds = %0
;   ret i32 2
;
; c:                                                ; preds = %6, %6
;   ret i32 3
;
; d:                                                ; preds = %6, %6
;   ret i32 4
;
; impossible:                                       ; preds = %6
;   unreachable
; }
;
; define i32 @of_comparisons(i8 %c) !prof !13 {
;   %1 = icmp eq i8 %c, 47
;   br i1 %1, label %d, label %2, !prof !20
;
; 2:                                                ; preds = %0
;   switch i8 %c, label %other [
;     i8 37, label %a
;     i8 42, label %b
;     i8 45, label %e
;   ], !prof !21
;
; a:                                                ; preds = %2
;   ret i32 1
;
; b:                                                ; preds = %2
;   ret i32 2
;
; d:                                                ; preds = %0
;   ret i32 3
;
; e:                                                ; preds = %2
;   ret i32 4
;
; other:                                            ; preds = %2
;   ret i32 5
; }
;
; define i32 @predicted(i8 %c) !prof !13 {
;   switch i8 %c, label %other [
;     i8 0, label %a
;     i8 1, label %b
;     i8 2, label %d
;     i8 3, label %e
;     i8 4, label %f
;     i8 5, label %g
;   ], !prof !22, !pleach.switch !23
;
; a:                                                ; preds = %0
;   ret i32 1
;
; b:                                                ; preds = %0
;   ret i32 2
;
; d:                                                ; preds = %0
;   ret i32 3
;
; e:                                                ; preds = %0
;   ret i32 4
;
; f:                                                ; preds = %0
;   ret i32 5
;
; g:                                                ; preds = %0
;   ret i32 6
;
; other:                                            ; preds = %0
;   ret i32 7
; }
;
; define i32 @three(i8 %c) !prof !13 {
;   switch i8 %c, label %other [
;     i8 37, label %a
;     i8 42, label %b
;     i8 47, label %d
;   ], !prof !24
;
; a:                                                ; preds = %0
;   ret i32 1
;
; b:                                                ; preds = %0
;   ret i32 2
;
; d:                                                ; preds = %0
;   ret i32 3
;
; other:                                            ; preds = %0
;   ret i32 5
; }
;
; define i32 @rare(i8 %c) !prof !25 {
;   switch i8 %c, label %other [
;     i8 37, label %a
;     i8 42, label %b
;     i8 47, label %d
;     i8 45, label %e
;   ], !prof !26
;
; a:                                                ; preds = %0
;   ret i32 1
;
; b:                                                ; preds = %0
;   ret i32 2
;
; d:                                                ; preds = %0
;   ret i32 3
;
; e:                                                ; preds = %0
;   ret i32 4
;
; other:                                            ; preds = %0
;   ret i32 5
; }
;
; ; Function Attrs: optsize
; define i32 @for_size(i8 %c) #0 !prof !13 {
;   switch i8 %c, label %other [
;     i8 37, label %a
;     i8 42, label %b
;     i8 47, label %d
;     i8 45, label %e
;   ], !prof !26
;
; a:                                                ; preds = %0
;   ret i32 1
;
; b:                                                ; preds = %0
;   ret i32 2
;
; d:                                                ; preds = %0
;   ret i32 3
;
; e:                                                ; preds = %0
;   ret i32 4
;
; other:                                            ; preds = %0
;   ret i32 5
; }
;
; define i32 @without_tables(i8 %c) #1 !prof !13 {
;   switch i8 %c, label %other [
;     i8 37, label %a
;     i8 42, label %b
;     i8 47, label %d
;     i8 45, label %e
;   ], !prof !26
;
; a:                                                ; preds = %0
;   ret i32 1
;
; b:                                                ; preds = %0
;   ret i32 2
;
; d:                                                ; preds = %0
;   ret i32 3
;
; e:                                                ; preds = %0
;   ret i32 4
;
; other:                                            ; preds = %0
;   ret i32 5
; }
;
; attributes #0 = { optsize }
; attributes #1 = { "no-jump-tables"="true" }
;
; !llvm.module.flags = !{!0}
;
; !0 = !{i32 1, !"ProfileSummary", !1}
; !1 = !{!2, !3, !4, !5, !6, !7, !8, !9}
; !2 = !{!"ProfileFormat", !"InstrProf"}
; !3 = !{!"TotalCount", i64 100000}
; !4 = !{!"MaxCount", i64 10000}
; !5 = !{!"MaxInternalCount", i64 10000}
; !6 = !{!"MaxFunctionCount", i64 10000}
; !7 = !{!"NumCounts", i64 40}
; !8 = !{!"NumFunctions", i64 8}
; !9 = !{!"DetailedSummary", !10}
; !10 = !{!11, !12}
; !11 = !{i32 990000, i64 1000, i32 20}
; !12 = !{i32 999999, i64 1, i32 40}
; !13 = !{!"function_entry_count", i64 10000}
; !14 = !{!"branch_weights", i32 1900, i32 8000}
; !15 = !{!"branch_weights", i32 1500, i32 6500}
; !16 = !{!"branch_weights", i32 5000, i32 1000, i32 0, i32 500}
; !17 = !{!"branch_weights", i32 2500, i32 7500}
; !18 = !{!"branch_weights", i32 1900, i32 5600}
; !19 = !{!"branch_weights", i32 0, i32 2500, i32 2500, i32 300, i32 300}
; !20 = !{!"branch_weights", i32 1000, i32 9000}
; !21 = !{!"branch_weights", i32 7600, i32 500, i32 900, i32 0}
; !22 = !{!"branch_weights", i32 1000, i32 1500, i32 1500, i32 1500, i32 1500, i32 1500, i32 1500}
; !23 = !{i32 3, i32 5}
; !24 = !{!"branch_weights", i32 7600, i32 500, i32 900, i32 1000}
; !25 = !{!"function_entry_count", i64 10}
; !26 = !{!"branch_weights", i32 7600, i32 500, i32 900, i32 1000, i32 0}
