; Each path of a function is counted; a function whose author wants no counts is left out.
; opt: -passes=pleach-instrument
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

define i32 @uncounted(i1 %c, i32 %x) noprofile {
entry:
  br i1 %c, label %then, label %end
then:
  br label %end
end:
  %r = phi i32 [ %x, %entry ], [ 1, %then ]
  ret i32 %r
}

; expected:
; module asm ".pushsection .pleach_cfg,\22G\22,@progbits,.pleach_cfg.677b0db424a20396.0c45f4391fe55d10,comdat"
; module asm ".quad 0x246434c50,0xa51fc370000003e,0x677b0db424a20396,0x1d18ebca00000000,0xc45f4391fe55d10,0xd68636e61726206,0x656d757274736e69,0x201036c6c2e746e"
; module asm ".quad 0x101010100010201,0x2000000"
; module asm ".popsection"
;
; @__pleach_description = internal constant [176 x i8] c"PLUNIT01\00\00\01\00\00\00\00\00\00\E1\F5\05\00\00\00\00\00\00\01\00\00\00\00\00\02\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00p\00\00\00\00\00\00\00\85\B6\836\FF?\BB\D4\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\01\00\00\00P\00\00\00\00\00\00\00\00\00\00\00PLCF\02\00\00\00>\00\00\007\FCQ\0A\96\03\A2$\B4\0D{g\00\00\00\00\CA\EB\18\1D\10]\E5\1F9\F4E\0C\06branch\0Dinstrument.ll\03\01\02\01\02\01\00\01\01\01\01\00\00\00\02\00\00\00\00"
; @__pleach_hashed = internal constant [0 x { i64, i64 }] zeroinitializer
; @__pleach_lost = internal global [2 x i64] zeroinitializer
; @__pleach_unit = internal global { i64, ptr, i64, i64, i64, ptr, i64, ptr, ptr, ptr, i64, i64 } { i64 -1887996661651954600, ptr @__pleach_description, i64 176, i64 2, i64 2652677208, ptr @__pleach_hashed, i64 0, ptr @__pleach_lost, ptr null, ptr null, i64 0, i64 0 }
; @__pleach_slot = internal thread_local global ptr null
; @llvm.compiler.used = appending global [2 x ptr] [ptr @__pleach_unit, ptr @__pleach_slot], section "llvm.metadata"
; @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__pleach_start_unit, ptr null }]
;
; define i32 @branch(i1 %c, i32 %x) {
; entry:
;   br i1 %c, label %then, label %entry.end_crit_edge
;
; entry.end_crit_edge:                              ; preds = %entry
;   call void @llvm.instrprof.increment.step(ptr @__pleach_slot, i64 1, i32 0, i32 0, i64 1) #2
;   br label %end
;
; then:                                             ; preds = %entry
;   call void @llvm.instrprof.increment.step(ptr @__pleach_slot, i64 0, i32 0, i32 0, i64 1) #2
;   br label %end
;
; end:                                              ; preds = %entry.end_crit_edge, %then
;   %r = phi i32 [ %x, %entry.end_crit_edge ], [ 1, %then ]
;   ret i32 %r
; }
;
; ; Function Attrs: noprofile
; define i32 @uncounted(i1 %c, i32 %x) #0 {
; entry:
;   br i1 %c, label %then, label %end
;
; then:                                             ; preds = %entry
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   %r = phi i32 [ %x, %entry ], [ 1, %then ]
;   ret i32 %r
; }
;
; ; Function Attrs: nounwind
; define internal void @__pleach_start_unit() #1 {
;   call void @__pleach_register(ptr @__pleach_unit)
;   ret void
; }
;
; declare void @__pleach_register(ptr)
;
; ; Function Attrs: nounwind
; declare void @llvm.instrprof.increment.step(ptr, i64, i32, i32, i64) #1
;
; attributes #0 = { noprofile }
; attributes #1 = { nounwind }
; attributes #2 = { nocallback nomerge nounwind willreturn memory(inaccessiblemem: readwrite) }
