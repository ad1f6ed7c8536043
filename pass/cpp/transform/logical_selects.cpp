// Keeps conditions joined by `&&` or `||` as selects.
#include "pleach.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

extern "C" {

// Removes the weights of selects that join two conditions. Instruction selection branches on each condition in turn,
// as in `-O2`'s code. Where a select is weighted and predictable, code generation makes a branch of it before that: then
// the second condition is held in a register, and tested once more.
bool pleach_unweight_logical_selects(LLVMModuleRef M) {
  using namespace PatternMatch;
  bool Changed = false;
  for (Function &F : *unwrap(M))
    for (BasicBlock &B : F)
      for (Instruction &I : B)
        if (isa<SelectInst>(I) && I.getType()->isIntegerTy(1) && I.hasMetadata(LLVMContext::MD_prof) &&
            match(&I, m_CombineOr(m_LogicalAnd(), m_LogicalOr()))) {
          I.setMetadata(LLVMContext::MD_prof, nullptr);
          Changed = true;
        }
  return Changed;
}

} // extern "C"
