; A vector load of which one element is used becomes a load of that element, where such an element is stored by itself. A
; vector of which more is used stays, and so does one from memory that is not written, or that is volatile.
; opt: -passes=function(pleach-narrow-loads)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define <2 x double> @stored(double %x, double %y) {
  %cells = alloca [4 x double], align 16
  store double %x, ptr %cells, align 16
  %both = load <2 x double>, ptr %cells, align 16
  %pair = insertelement <2 x double> %both, double %y, i64 1
  ret <2 x double> %pair
}

define <4 x float> @second(ptr noalias %p, ptr noalias %q, float %x) {
  %at = getelementptr float, ptr %p, i64 1
  store float %x, ptr %at, align 4
  %all = load <4 x float>, ptr %p, align 4
  %spread = shufflevector <4 x float> %all, <4 x float> poison, <4 x i32> <i32 1, i32 1, i32 poison, i32 1>
  ret <4 x float> %spread
}

define <2 x double> @more(double %x) {
  %cells = alloca [4 x double], align 16
  store double %x, ptr %cells, align 16
  %both = load <2 x double>, ptr %cells, align 16
  %turned = shufflevector <2 x double> %both, <2 x double> poison, <2 x i32> <i32 1, i32 0>
  ret <2 x double> %turned
}

define double @read(ptr %p) {
  %both = load <2 x double>, ptr %p, align 16
  %one = extractelement <2 x double> %both, i64 0
  ret double %one
}

define double @watched(ptr %p, double %x) {
  store double %x, ptr %p, align 16
  %both = load volatile <2 x double>, ptr %p, align 16
  %one = extractelement <2 x double> %both, i64 0
  ret double %one
}

; expected:
; define <2 x double> @stored(double %x, double %y) {
;   %cells = alloca [4 x double], align 16
;   store double %x, ptr %cells, align 16
;   %1 = getelementptr inbounds i8, ptr %cells, i64 0
;   %both1 = load double, ptr %1, align 16
;   %2 = insertelement <2 x double> poison, double %both1, i64 0
;   %pair = insertelement <2 x double> %2, double %y, i64 1
;   ret <2 x double> %pair
; }
;
; define <4 x float> @second(ptr noalias %p, ptr noalias %q, float %x) {
;   %at = getelementptr float, ptr %p, i64 1
;   store float %x, ptr %at, align 4
;   %1 = getelementptr inbounds i8, ptr %p, i64 4
;   %all1 = load float, ptr %1, align 4
;   %2 = insertelement <4 x float> poison, float %all1, i64 1
;   %spread = shufflevector <4 x float> %2, <4 x float> poison, <4 x i32> <i32 1, i32 1, i32 poison, i32 1>
;   ret <4 x float> %spread
; }
;
; define <2 x double> @more(double %x) {
;   %cells = alloca [4 x double], align 16
;   store double %x, ptr %cells, align 16
;   %both = load <2 x double>, ptr %cells, align 16
;   %turned = shufflevector <2 x double> %both, <2 x double> poison, <2 x i32> <i32 1, i32 0>
;   ret <2 x double> %turned
; }
;
; define double @read(ptr %p) {
;   %both = load <2 x double>, ptr %p, align 16
;   %one = extractelement <2 x double> %both, i64 0
;   ret double %one
; }
;
; define double @watched(ptr %p, double %x) {
;   store double %x, ptr %p, align 16
;   %both = load volatile <2 x double>, ptr %p, align 16
;   %one = extractelement <2 x double> %both, i64 0
;   ret double %one
; }
