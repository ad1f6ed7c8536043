; A profile's counts become entry counts, branch weights and a summary.
; opt: -passes=pleach-use -pleach-random=3 -pleach-superblocks=0 -pleach-summary
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @branch(i1 %c, i32 %x) {
entry:
  br i1 %c, label %then, label %end
then:
  br label %end
end:
  %r = phi i32 [ %x, %entry ], [ 1, %then ]
  ret i32 %r
}

; expected:
; pleach: use_random.ll: profile used for 1 functions (0 indirect calls, 0 memory operations, 0 divisions), 0 cold, 0 unlikely, 0 not sampled, 0 salvaged, 0 not matched, 0 not in the profile
;
; define i32 @branch(i1 %c, i32 %x) #0 !prof !31 !pleach.paths !32 {
; entry:
;   br i1 %c, label %then, label %end, !prof !35, !unpredictable !36, !pleach.sampled !37
;
; then:                                             ; preds = %entry
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   %r = phi i32 [ %x, %entry ], [ 1, %then ]
;   ret i32 %r
; }
;
; attributes #0 = { "pleach-hot" }
;
; !llvm.module.flags = !{!0, !29}
; !pleach.profile = !{!30}
;
; !0 = !{i32 1, !"ProfileSummary", !1}
; !1 = !{!2, !3, !4, !5, !6, !7, !8, !9, !10, !11}
; !2 = !{!"ProfileFormat", !"InstrProf"}
; !3 = !{!"TotalCount", i64 1402368}
; !4 = !{!"MaxCount", i64 596480}
; !5 = !{!"MaxInternalCount", i64 596480}
; !6 = !{!"MaxFunctionCount", i64 596480}
; !7 = !{!"NumCounts", i64 3}
; !8 = !{!"NumFunctions", i64 1}
; !9 = !{!"IsPartialProfile", i64 0}
; !10 = !{!"PartialProfileRatio", double 0.000000e+00}
; !11 = !{!"DetailedSummary", !12}
; !12 = !{!13, !14, !15, !16, !17, !18, !19, !20, !21, !22, !23, !24, !25, !26, !27, !28}
; !13 = !{i32 10000, i64 596480, i32 2}
; !14 = !{i32 100000, i64 596480, i32 2}
; !15 = !{i32 200000, i64 596480, i32 2}
; !16 = !{i32 300000, i64 596480, i32 2}
; !17 = !{i32 400000, i64 596480, i32 2}
; !18 = !{i32 500000, i64 596480, i32 2}
; !19 = !{i32 600000, i64 596480, i32 2}
; !20 = !{i32 700000, i64 596480, i32 2}
; !21 = !{i32 800000, i64 596480, i32 2}
; !22 = !{i32 900000, i64 209408, i32 3}
; !23 = !{i32 950000, i64 209408, i32 3}
; !24 = !{i32 990000, i64 209408, i32 3}
; !25 = !{i32 999000, i64 209408, i32 3}
; !26 = !{i32 999900, i64 209408, i32 3}
; !27 = !{i32 999990, i64 209408, i32 3}
; !28 = !{i32 999999, i64 500, i32 3}
; !29 = !{i32 7, !"pleach.placement", i32 2}
; !30 = !{i32 1, !"early", i64 596480}
; !31 = !{!"function_entry_count", i64 596480}
; !32 = !{!33, !34}
; !33 = !{i64 387072, i64 387072, i64 387072, !"entry", !"exit", i32 0, i32 2}
; !34 = !{i64 209408, i64 209408, i64 209408, !"entry", !"exit", i32 0, i32 1, i32 2}
; !35 = !{!"branch_weights", i32 209408000, i32 387072000}
; !36 = !{i32 479}
; !37 = !{}
