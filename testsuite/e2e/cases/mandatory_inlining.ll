; What must be inlined is inlined before blocks are identified, and simplified: each place has blocks of its own, and what
; its constants exclude has none.
; opt: -passes=pleach-mandatory-inlining
target triple = "x86_64-unknown-linux-gnu"

declare void @text()
declare void @number()

define internal void @fetch(i32 %kind, i1 %fast) alwaysinline {
entry:
  br i1 %fast, label %exit, label %check

check:
  %is_text = icmp eq i32 %kind, 6
  br i1 %is_text, label %text, label %number

text:
  call void @text()
  br label %exit

number:
  call void @number()
  br label %exit

exit:
  ret void
}

define void @any(i32 %kind) {
  call void @fetch(i32 %kind, i1 false)
  ret void
}

define void @texts() {
  call void @fetch(i32 6, i1 false)
  ret void
}

define void @none(i32 %kind) {
  call void @fetch(i32 %kind, i1 true)
  ret void
}

; expected:
; declare void @text()
;
; declare void @number()
;
; define void @any(i32 %kind) {
;   %is_text.i = icmp eq i32 %kind, 6
;   br i1 %is_text.i, label %text.i, label %number.i
;
; text.i:                                           ; preds = %0
;   call void @text()
;   br label %fetch.exit
;
; number.i:                                         ; preds = %0
;   call void @number()
;   br label %fetch.exit
;
; fetch.exit:                                       ; preds = %text.i, %number.i
;   ret void
; }
;
; define void @texts() {
;   call void @text()
;   ret void
; }
;
; define void @none(i32 %kind) {
;   ret void
; }
