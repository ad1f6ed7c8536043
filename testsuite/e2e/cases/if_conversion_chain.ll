; The decoder of a range coder: which probability is next depends on the bits before. With selects each bit would wait
; for the one before, so the branch stays. The same arms behind a condition that depends on no bit are if-converted.
; opt: -passes=pleach-if-conversion
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i64 @decoded(ptr %probabilities, i64 %code) {
entry:
  br label %bit
bit:
  %node = phi i64 [ 1, %entry ], [ %next, %end ]
  %range = phi i64 [ 4294967295, %entry ], [ %left, %end ]
  %where = getelementptr i64, ptr %probabilities, i64 %node
  %probability = load i64, ptr %where
  %scaled = lshr i64 %range, 11
  %bound = mul i64 %scaled, %probability
  %zero = icmp ult i64 %code, %bound
  br i1 %zero, label %then, label %else, !unpredictable !0
then:
  %more = add i64 %probability, 32
  store i64 %more, ptr %where
  %twice = shl i64 %node, 1
  br label %end
else:
  %less = sub i64 %probability, 32
  store i64 %less, ptr %where
  %double = shl i64 %node, 1
  %odd = or i64 %double, 1
  br label %end
end:
  %next = phi i64 [ %twice, %then ], [ %odd, %else ]
  %left = phi i64 [ %bound, %then ], [ %scaled, %else ]
  %again = icmp ult i64 %next, 256
  br i1 %again, label %bit, label %done
done:
  ret i64 %next
}

define i64 @given(ptr %probabilities, ptr %bits) {
entry:
  br label %bit
bit:
  %node = phi i64 [ 1, %entry ], [ %next, %end ]
  %i = phi i64 [ 0, %entry ], [ %after, %end ]
  %where = getelementptr i64, ptr %probabilities, i64 %node
  %probability = load i64, ptr %where
  %at = getelementptr i64, ptr %bits, i64 %i
  %bit.value = load i64, ptr %at
  %zero = icmp eq i64 %bit.value, 0
  br i1 %zero, label %then, label %else, !unpredictable !0
then:
  %more = add i64 %probability, 32
  store i64 %more, ptr %where
  %twice = shl i64 %node, 1
  br label %end
else:
  %less = sub i64 %probability, 32
  store i64 %less, ptr %where
  %double = shl i64 %node, 1
  %odd = or i64 %double, 1
  br label %end
end:
  %next = phi i64 [ %twice, %then ], [ %odd, %else ]
  %after = add i64 %i, 1
  %again = icmp ult i64 %next, 256
  br i1 %again, label %bit, label %done
done:
  ret i64 %next
}

; The condition depends on what the first branch decided, but nothing of it reaches the next iteration: a processor
; overlaps iterations, so both branches are if-converted.
define void @fresh(ptr %from, ptr %to, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %after, %end ]
  %at = getelementptr i64, ptr %from, i64 %i
  %x = load i64, ptr %at
  %negative = icmp slt i64 %x, 0
  br i1 %negative, label %negate, label %absolute, !unpredictable !0
negate:
  %opposite = sub i64 0, %x
  br label %absolute
absolute:
  %size = phi i64 [ %x, %loop ], [ %opposite, %negate ]
  %weight = mul i64 %size, 3
  %low = and i64 %weight, 64
  %even = icmp eq i64 %low, 0
  br i1 %even, label %keep, label %end, !unpredictable !0
keep:
  %where = getelementptr i64, ptr %to, i64 %i
  store i64 %size, ptr %where
  br label %end
end:
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

!0 = !{i32 400}

; expected:
; define i64 @decoded(ptr %probabilities, i64 %code) {
; entry:
;   br label %bit
;
; bit:                                              ; preds = %end, %entry
;   %node = phi i64 [ 1, %entry ], [ %next, %end ]
;   %range = phi i64 [ 4294967295, %entry ], [ %left, %end ]
;   %where = getelementptr i64, ptr %probabilities, i64 %node
;   %probability = load i64, ptr %where, align 8
;   %scaled = lshr i64 %range, 11
;   %bound = mul i64 %scaled, %probability
;   %zero = icmp ult i64 %code, %bound
;   br i1 %zero, label %then, label %else, !unpredictable !0
;
; then:                                             ; preds = %bit
;   %more = add i64 %probability, 32
;   store i64 %more, ptr %where, align 8
;   %twice = shl i64 %node, 1
;   br label %end
;
; else:                                             ; preds = %bit
;   %less = sub i64 %probability, 32
;   store i64 %less, ptr %where, align 8
;   %double = shl i64 %node, 1
;   %odd = or i64 %double, 1
;   br label %end
;
; end:                                              ; preds = %else, %then
;   %next = phi i64 [ %twice, %then ], [ %odd, %else ]
;   %left = phi i64 [ %bound, %then ], [ %scaled, %else ]
;   %again = icmp ult i64 %next, 256
;   br i1 %again, label %bit, label %done
;
; done:                                             ; preds = %end
;   ret i64 %next
; }
;
; define i64 @given(ptr %probabilities, ptr %bits) {
; entry:
;   br label %bit
;
; bit:                                              ; preds = %bit, %entry
;   %node = phi i64 [ 1, %entry ], [ %1, %bit ]
;   %i = phi i64 [ 0, %entry ], [ %after, %bit ]
;   %where = getelementptr i64, ptr %probabilities, i64 %node
;   %probability = load i64, ptr %where, align 8
;   %at = getelementptr i64, ptr %bits, i64 %i
;   %bit.value = load i64, ptr %at, align 8
;   %zero = icmp eq i64 %bit.value, 0
;   %more = add i64 %probability, 32
;   %less = sub i64 %probability, 32
;   %0 = select i1 %zero, i64 %more, i64 %less, !unpredictable !0
;   store i64 %0, ptr %where, align 8
;   %twice = shl i64 %node, 1
;   %double = shl i64 %node, 1
;   %odd = or i64 %double, 1
;   %1 = select i1 %zero, i64 %twice, i64 %odd, !unpredictable !0
;   %after = add i64 %i, 1
;   %again = icmp ult i64 %1, 256
;   br i1 %again, label %bit, label %done
;
; done:                                             ; preds = %bit
;   ret i64 %1
; }
;
; define void @fresh(ptr %from, ptr %to, i64 %n) {
; entry:
;   %pleach.sink = alloca i128, align 16, !pleach.sink !1
;   br label %loop
;
; loop:                                             ; preds = %loop, %entry
;   %i = phi i64 [ 0, %entry ], [ %after, %loop ]
;   %at = getelementptr i64, ptr %from, i64 %i
;   %x = load i64, ptr %at, align 8
;   %negative = icmp slt i64 %x, 0
;   %opposite = sub i64 0, %x
;   %0 = select i1 %negative, i64 %opposite, i64 %x, !unpredictable !0
;   %weight = mul i64 %0, 3
;   %low = and i64 %weight, 64
;   %even = icmp eq i64 %low, 0
;   %where = getelementptr i64, ptr %to, i64 %i
;   %1 = select i1 %even, ptr %where, ptr %pleach.sink, !unpredictable !0
;   store i64 %0, ptr %1, align 8
;   %after = add i64 %i, 1
;   %more = icmp ult i64 %after, %n
;   br i1 %more, label %loop, label %done
;
; done:                                             ; preds = %loop
;   ret void
; }
;
; !0 = !{i32 400}
; !1 = !{}
