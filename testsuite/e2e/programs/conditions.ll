; Two conditions joined by `&&`, nearly always true.
target triple = "x86_64-pc-linux-gnu"
define i1 @both(i1 %a, i1 %b) {
  %both = select i1 %a, i1 %b, i1 false, !prof !0
  ret i1 %both
}
!0 = !{!"branch_weights", i32 1000, i32 1}
