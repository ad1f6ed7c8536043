// Diagnostics and remarks, through the host.
#include "pleach.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace llvm;

extern "C" {

// Reports through the module's diagnostic handler, so that clang and lld print it in their usual form and set their
// usual exit status.
void pleach_diagnose(LLVMModuleRef M, const char *Text, size_t Size, bool IsFatal) {
  LLVMContext &C = unwrap(M)->getContext();
  C.diagnose(DiagnosticInfoGeneric(StringRef(Text, Size), IsFatal ? DS_Error : DS_Warning));
}

// Whether remarks of this plugin are enabled. Otherwise they are not built, to save time.
bool pleach_remarks_enabled(LLVMModuleRef M) {
  LLVMContext &C = unwrap(M)->getContext();
  return C.getLLVMRemarkStreamer() || C.getDiagHandlerPtr()->isAnyRemarkEnabled("pleach");
}

// Emits a remark: for `-Rpass=pleach` if `Passed`, else for `-Rpass-missed=pleach`.
void pleach_remark(LLVMValueRef F, bool Passed, const char *Name, const PleachRemarkPiece *Pieces, size_t Count) {
  Function *Fn = unwrap<Function>(F);
  OptimizationRemarkEmitter ORE(Fn);
  DebugLoc Loc = Fn->getSubprogram() ? DebugLoc(DILocation::get(
                                           Fn->getContext(), Fn->getSubprogram()->getScopeLine(), 0,
                                           Fn->getSubprogram()))
                                     : DebugLoc();
  const BasicBlock *Entry = &Fn->getEntryBlock();
  auto Emit = [&](auto Remark) {
    for (const PleachRemarkPiece &Piece : ArrayRef(Pieces, Count))
      Remark << DiagnosticInfoOptimizationBase::Argument(Piece.Name, StringRef(Piece.Text, Piece.Size));
    ORE.emit(Remark);
  };
  if (Passed)
    Emit(OptimizationRemark("pleach", Name, Loc, Entry));
  else
    Emit(OptimizationRemarkMissed("pleach", Name, Loc, Entry));
}

} // extern "C"
