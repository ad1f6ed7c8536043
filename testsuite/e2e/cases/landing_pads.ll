; Two invokes with the same successors, or so but for an empty block: a value that both successors get alike reaches the
; landing pad through memory. One that only the landing pad gets, and what a single invoke passes on, stay.
; opt: -passes=function(pleach-landing-pads)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare void @work()
declare i32 @__gxx_personality_v0(...)

define i64 @alike(i1 %c, i64 %n) personality ptr @__gxx_personality_v0 {
entry:
  br i1 %c, label %one, label %other
one:
  %x = add i64 %n, 2
  %y = mul i64 %n, 3
  invoke void @work() to label %done unwind label %failed
other:
  invoke void @work() to label %done unwind label %failed
done:
  %d = phi i64 [ %x, %one ], [ 0, %other ]
  ret i64 %d
failed:
  %f = phi i64 [ 0, %other ], [ %x, %one ]
  %own = phi i64 [ %y, %one ], [ %n, %other ]
  %pad = landingpad { ptr, i32 } catch ptr null
  %sum = add i64 %f, %own
  ret i64 %sum
}

define i64 @forwarded(i1 %c, i64 %n) personality ptr @__gxx_personality_v0 {
entry:
  br i1 %c, label %one, label %other
one:
  invoke void @work() to label %on unwind label %failed
other:
  %x = add i64 %n, 2
  invoke void @work() to label %done unwind label %failed
on:
  br label %done
done:
  %d = phi i64 [ %n, %on ], [ %x, %other ]
  ret i64 %d
failed:
  %f = phi i64 [ %n, %one ], [ %x, %other ]
  %pad = landingpad { ptr, i32 } catch ptr null
  ret i64 %f
}

define i64 @single(i64 %n) personality ptr @__gxx_personality_v0 {
entry:
  invoke void @work() to label %done unwind label %failed
done:
  %d = phi i64 [ %n, %entry ]
  ret i64 %d
failed:
  %pad = landingpad { ptr, i32 } catch ptr null
  ret i64 0
}

; expected:
; declare void @work()
;
; declare i32 @__gxx_personality_v0(...)
;
; define i64 @alike(i1 %c, i64 %n) personality ptr @__gxx_personality_v0 {
; entry:
;   %f.reg2mem = alloca i64, align 8
;   br i1 %c, label %one, label %other
;
; one:                                              ; preds = %entry
;   %x = add i64 %n, 2
;   %y = mul i64 %n, 3
;   store i64 %x, ptr %f.reg2mem, align 8
;   invoke void @work()
;           to label %done unwind label %failed
;
; other:                                            ; preds = %entry
;   store i64 0, ptr %f.reg2mem, align 8
;   invoke void @work()
;           to label %done unwind label %failed
;
; done:                                             ; preds = %other, %one
;   %d = phi i64 [ %x, %one ], [ 0, %other ]
;   ret i64 %d
;
; failed:                                           ; preds = %other, %one
;   %own = phi i64 [ %y, %one ], [ %n, %other ]
;   %pad = landingpad { ptr, i32 }
;           catch ptr null
;   %f.reload = load i64, ptr %f.reg2mem, align 8
;   %sum = add i64 %f.reload, %own
;   ret i64 %sum
; }
;
; define i64 @forwarded(i1 %c, i64 %n) personality ptr @__gxx_personality_v0 {
; entry:
;   %f.reg2mem = alloca i64, align 8
;   br i1 %c, label %one, label %other
;
; one:                                              ; preds = %entry
;   store i64 %n, ptr %f.reg2mem, align 8
;   invoke void @work()
;           to label %on unwind label %failed
;
; other:                                            ; preds = %entry
;   %x = add i64 %n, 2
;   store i64 %x, ptr %f.reg2mem, align 8
;   invoke void @work()
;           to label %done unwind label %failed
;
; on:                                               ; preds = %one
;   br label %done
;
; done:                                             ; preds = %on, %other
;   %d = phi i64 [ %n, %on ], [ %x, %other ]
;   ret i64 %d
;
; failed:                                           ; preds = %other, %one
;   %pad = landingpad { ptr, i32 }
;           catch ptr null
;   %f.reload = load i64, ptr %f.reg2mem, align 8
;   ret i64 %f.reload
; }
;
; define i64 @single(i64 %n) personality ptr @__gxx_personality_v0 {
; entry:
;   invoke void @work()
;           to label %done unwind label %failed
;
; done:                                             ; preds = %entry
;   %d = phi i64 [ %n, %entry ]
;   ret i64 %d
;
; failed:                                           ; preds = %entry
;   %pad = landingpad { ptr, i32 }
;           catch ptr null
;   ret i64 0
; }
