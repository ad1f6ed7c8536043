; The decoder of a range coder: which probability is next depends on the bits before. With selects each bit would wait
; for the one before, so the branch stays. The same arms behind a condition that depends on no bit are if-converted.
; opt: -passes=pleach-selects
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
; !0 = !{i32 400}
