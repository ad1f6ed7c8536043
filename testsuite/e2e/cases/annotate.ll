; Probes in each block of a function, numbers of its calls in their locations, and its graph in a section; nothing for naked functions.
; opt: -passes=pleach-annotate
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare void @work()

define void @twice(i1 %c) {
entry:
  br i1 %c, label %then, label %end
then:
  call void @work()
  br label %end
end:
  ret void
}

define void @bare() naked {
  unreachable
}

; expected:
; module asm ".pushsection .pleach_cfg,\22G\22,@progbits,.pleach_cfg.bb9873d8088aabac.0e2bddacef8969d1,comdat"
; module asm ".quad 0x246434c50,0x7f77c69600000045,0xbb9873d8088aabac,0xdf9d4e3600000000,0xe2bddacef8969d1,0x610b656369777405,0x2e657461746f6e6e,0x102010201036c6c"
; module asm ".quad 0x201010100,0x2ce9670401010001,0x7fbca96587"
; module asm ".popsection"
;
; declare void @work()
;
; define void @twice(i1 %c) !dbg !4 {
; entry:
;   call void @llvm.pseudoprobe(i64 -4929062420463572052, i64 1, i32 0, i64 -1), !dbg !6
;   br i1 %c, label %then, label %end
;
; then:                                             ; preds = %entry
;   call void @llvm.pseudoprobe(i64 -4929062420463572052, i64 2, i32 0, i64 -1), !dbg !6
;   call void @work(), !dbg !7
;   br label %end
;
; end:                                              ; preds = %then, %entry
;   call void @llvm.pseudoprobe(i64 -4929062420463572052, i64 3, i32 0, i64 -1), !dbg !6
;   ret void
; }
;
; ; Function Attrs: naked
; define void @bare() #0 {
;   unreachable
; }
;
; ; Function Attrs: nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite)
; declare void @llvm.pseudoprobe(i64, i64, i32, i64) #1
;
; attributes #0 = { naked }
; attributes #1 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: readwrite) }
;
; !llvm.module.flags = !{!0}
; !llvm.dbg.cu = !{!1}
; !llvm.pseudo_probe_desc = !{!3}
;
; !0 = !{i32 2, !"Debug Info Version", i32 3}
; !1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, producer: "pleach", isOptimized: true, runtimeVersion: 0, emissionKind: NoDebug)
; !2 = !DIFile(filename: "annotate.ll", directory: "")
; !3 = !{i64 -4929062420463572052, i64 1021153475352422865, !"twice"}
; !4 = distinct !DISubprogram(name: "twice", linkageName: "twice", scope: !2, file: !2, type: !5, flags: DIFlagArtificial, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
; !5 = !DISubroutineType(types: null)
; !6 = !DILocation(line: 0, scope: !4)
; !7 = !DILocation(line: 0, scope: !8)
; !8 = !DILexicalBlockFile(scope: !4, file: !2, discriminator: 455082023)
