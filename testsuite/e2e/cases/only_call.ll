; The only call of a local function is inlined although the profile says that it is cold, but by the inliner: what must be
; inlined is inlined before its callee is simplified.
; opt: -passes=pleach-small-callees
target triple = "x86_64-unknown-linux-gnu"

declare void @opaque(i32)

define internal void @once(i32 %n) {
  call void @opaque(i32 %n)
  ret void
}

define void @caller(i32 %n) {
  call void @once(i32 %n) "pleach-only-call"
  ret void
}

; expected:
; declare void @opaque(i32)
;
; define internal void @once(i32 %n) {
;   call void @opaque(i32 %n)
;   ret void
; }
;
; define void @caller(i32 %n) {
;   call void @once(i32 %n) #0
;   ret void
; }
;
; attributes #0 = { "function-inline-threshold"="15225" }
