; The counter of a loop without calls is kept in a register and added to memory at the loop's exit. A loop with a call
; that may not return counts in memory.
; opt: -passes=pleach-instrument,function(loop-simplify,pleach-promote-counters) -pleach-instrument=paths
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare void @may_exit()

define i32 @sum(ptr %p, i32 %n) {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %t, %loop ]
  %a = getelementptr i32, ptr %p, i32 %i
  %v = load i32, ptr %a
  %t = add i32 %s, %v
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret i32 %t
}

define void @calls(i32 %n) {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void @may_exit()
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

; expected:
; module asm ".pushsection .pleach_cfg,\22G\22,@progbits,.pleach_cfg.e49c3f68893b621d.04ec9fb260cb43d5,comdat"
; module asm ".quad 0x246434c50,0x557eea1a00000041,0xe49c3f68893b621d,0x69914ab00000000,0x4ec9fb260cb43d5,0x6f7270136d757303,0x756f635f65746f6d,0x6c6c2e737265746e"
; module asm ".quad 0x201000101010103,0x1000000080100,0x0"
; module asm ".popsection"
; module asm ".pushsection .pleach_cfg,\22G\22,@progbits,.pleach_cfg.aa6e43e7e891bbf2.0f3c854d2b6de34f,comdat"
; module asm ".quad 0x246434c50,0x34ea9c040000004d,0xaa6e43e7e891bbf2,0x69914ab00000000,0xf3c854d2b6de34f,0x7013736c6c616305,0x635f65746f6d6f72,0x2e737265746e756f"
; module asm ".quad 0x1010101036c6c,0x501000201,0x5ade6b0401010001,0x1c193c95fe"
; module asm ".popsection"
;
; @__pleach_description = internal constant [312 x i8] c"PLUNIT01\00\00\01\00\00\00\00\00\00\E1\F5\05\00\00\00\00\00\00\01\00\00\00\00\00\05\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\F8\00\00\00\00\00\00\00\85Q?\1Ewn\06\B1\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\01\00\00\00X\00\00\00\00\00\00\00\00\00\00\00PLCF\02\00\00\00A\00\00\00\1A\EA~U\1Db;\89h?\9C\E4\00\00\00\00\AB\14\99\06\D5C\CB`\B2\9F\EC\04\03sum\13promote_counters.ll\03\01\01\01\01\00\01\02\00\01\08\00\00\00\01\00\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\03\00\00\00\00\00\00\00\01\00\00\00`\00\00\00\00\00\00\00\00\00\00\00PLCF\02\00\00\00M\00\00\00\04\9C\EA4\F2\BB\91\E8\E7Cn\AA\00\00\00\00\AB\14\99\06O\E3m+M\85<\0F\05calls\13promote_counters.ll\03\01\01\01\01\00\01\02\00\01\05\00\00\00\01\00\01\01\04k\DEZ\FE\95<\19\1C\00\00\00"
; @__pleach_hashed = internal constant [0 x { i64, i64 }] zeroinitializer
; @__pleach_lost = internal global [5 x i64] zeroinitializer
; @__pleach_unit = internal global { i64, ptr, i64, i64, i64, ptr, i64, ptr, ptr, ptr, i64, i64 } { i64 -7407586800897809079, ptr @__pleach_description, i64 312, i64 5, i64 2661098825, ptr @__pleach_hashed, i64 0, ptr @__pleach_lost, ptr null, ptr null, i64 0, i64 0 }
; @__pleach_slot = internal thread_local global ptr null
; @llvm.compiler.used = appending global [2 x ptr] [ptr @__pleach_unit, ptr @__pleach_slot], section "llvm.metadata"
; @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__pleach_start_unit, ptr null }]
;
; declare void @may_exit()
;
; define i32 @sum(ptr %p, i32 %n) {
; entry:
;   br label %loop
;
; loop:                                             ; preds = %loop.loop_crit_edge, %entry
;   %pleach.count.0 = phi i64 [ 0, %entry ], [ %0, %loop.loop_crit_edge ]
;   %i = phi i32 [ 0, %entry ], [ %next, %loop.loop_crit_edge ]
;   %s = phi i32 [ 0, %entry ], [ %t, %loop.loop_crit_edge ]
;   %a = getelementptr i32, ptr %p, i32 %i
;   %v = load i32, ptr %a, align 4
;   %t = add i32 %s, %v
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop.loop_crit_edge, label %exit
;
; loop.loop_crit_edge:                              ; preds = %loop
;   %0 = add i64 %pleach.count.0, 1
;   br label %loop
;
; exit:                                             ; preds = %loop
;   call void @llvm.instrprof.increment.step(ptr @__pleach_slot, i64 1, i32 0, i32 0, i64 %pleach.count.0) #1
;   call void @llvm.instrprof.increment.step(ptr @__pleach_slot, i64 0, i32 0, i32 0, i64 1) #1
;   ret i32 %t
; }
;
; define void @calls(i32 %n) personality ptr @__gcc_personality_v0 {
; entry:
;   %pleach.record = alloca [2 x i32], align 8
;   br label %loop
;
; loop:                                             ; preds = %loop.loop_crit_edge, %entry
;   %i = phi i32 [ 0, %entry ], [ %next, %loop.loop_crit_edge ]
;   %0 = getelementptr inbounds i32, ptr %pleach.record, i32 0
;   store volatile i32 3, ptr %0, align 4
;   %1 = getelementptr inbounds i32, ptr %pleach.record, i32 1
;   store volatile i32 -1633868471, ptr %1, align 4
;   invoke void @may_exit()
;           to label %.noexc unwind label %pleach.unwind
;
; .noexc:                                           ; preds = %loop
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop.loop_crit_edge, label %exit
;
; loop.loop_crit_edge:                              ; preds = %.noexc
;   call void @llvm.instrprof.increment.step(ptr @__pleach_slot, i64 4, i32 0, i32 0, i64 1) #1
;   br label %loop
;
; exit:                                             ; preds = %.noexc
;   store volatile i64 0, ptr %pleach.record, align 8
;   call void @llvm.instrprof.increment.step(ptr @__pleach_slot, i64 2, i32 0, i32 0, i64 1) #1
;   ret void
;
; pleach.unwind:                                    ; preds = %loop
;   %2 = landingpad { ptr, i32 }
;           cleanup
;   %3 = getelementptr inbounds i32, ptr %pleach.record, i32 0
;   %4 = load volatile i32, ptr %3, align 4
;   %5 = zext i32 %4 to i64
;   %6 = getelementptr inbounds i32, ptr %pleach.record, i32 1
;   %7 = load volatile i32, ptr %6, align 4
;   %8 = xor i32 %7, -1
;   %9 = zext i32 %8 to i64
;   store volatile i64 0, ptr %pleach.record, align 8
;   call void @__pleach_abandon(i64 %5, i64 %9, i64 0)
;   resume { ptr, i32 } %2
; }
;
; ; Function Attrs: nounwind
; define internal void @__pleach_start_unit() #0 {
;   call void @__pleach_register(ptr @__pleach_unit)
;   ret void
; }
;
; declare void @__pleach_register(ptr)
;
; ; Function Attrs: nounwind
; declare void @llvm.instrprof.increment.step(ptr, i64, i32, i32, i64) #0
;
; declare i32 @__gcc_personality_v0(...)
;
; ; Function Attrs: nounwind
; declare void @__pleach_abandon(i64, i64, i64) #0
;
; attributes #0 = { nounwind }
; attributes #1 = { nocallback nomerge nounwind willreturn memory(inaccessiblemem: readwrite) }
