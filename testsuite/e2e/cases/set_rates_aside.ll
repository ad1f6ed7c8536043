; SimplifyCFG makes selects of a branch that the programmer marked, but not of one with a recorded rate. If-conversion
; makes them where it can, but for floating-point values: code generation would make a branch of their select again.
; opt: -passes=function(pleach-set-rates-aside,simplifycfg<speculate-unpredictables>),pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define double @floating(i1 %c, i64 %n) {
entry:
  br i1 %c, label %then, label %end, !unpredictable !0
then:
  %a = mul i64 %n, 37
  %b = xor i64 %a, %n
  %d = mul i64 %b, 41
  %x = sitofp i64 %d to double
  br label %end
end:
  %r = phi double [ %x, %then ], [ 0.0, %entry ]
  ret double %r
}

define i64 @integer(i1 %c, i64 %n) {
entry:
  br i1 %c, label %then, label %end, !unpredictable !0
then:
  %a = mul i64 %n, 37
  %b = xor i64 %a, %n
  %d = mul i64 %b, 41
  br label %end
end:
  %r = phi i64 [ %d, %then ], [ 0, %entry ]
  ret i64 %r
}

define double @marked(i1 %c, i64 %n) {
entry:
  br i1 %c, label %then, label %end, !unpredictable !1
then:
  %a = mul i64 %n, 37
  %b = xor i64 %a, %n
  %d = mul i64 %b, 41
  %x = sitofp i64 %d to double
  br label %end
end:
  %r = phi double [ %x, %then ], [ 0.0, %entry ]
  ret double %r
}

!0 = !{i32 440}
!1 = !{}

; expected:
; define double @floating(i1 %c, i64 %n) {
; entry:
;   br i1 %c, label %then, label %end, !unpredictable !0
;
; then:                                             ; preds = %entry
;   %a = mul i64 %n, 37
;   %b = xor i64 %a, %n
;   %d = mul i64 %b, 41
;   %x = sitofp i64 %d to double
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   %r = phi double [ %x, %then ], [ 0.000000e+00, %entry ]
;   ret double %r
; }
;
; define i64 @integer(i1 %c, i64 %n) {
; entry:
;   %a = mul i64 %n, 37
;   %b = xor i64 %a, %n
;   %d = mul i64 %b, 41
;   %0 = select i1 %c, i64 %d, i64 0, !unpredictable !0
;   ret i64 %0
; }
;
; define double @marked(i1 %c, i64 %n) {
; entry:
;   %a = mul i64 %n, 37
;   %b = xor i64 %a, %n
;   %d = mul i64 %b, 41
;   %x = sitofp i64 %d to double
;   %r = select i1 %c, double %x, double 0.000000e+00, !unpredictable !1
;   ret double %r
; }
;
; !0 = !{i32 440}
; !1 = !{}
