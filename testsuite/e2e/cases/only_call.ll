; The only call of a local function must be inlined although the profile says that it is cold, but not before the function
; is simplified.
; opt: -passes=cgscc(pleach-after-inlining)
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
; attributes #0 = { alwaysinline }
