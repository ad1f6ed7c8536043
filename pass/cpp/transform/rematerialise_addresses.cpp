// Rematerialises addresses where they are used, before the block that computes them is duplicated.
//
// Code generation folds an address into the loads and stores that use it, even in other blocks. Once the block that
// computes the address has copies, a φ would join the copies' addresses, and would need a register.
#include "pleach.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace {

// Whether targets fold an instruction into its users: an address base + index × scale + offset, or a no-op.
bool isFolded(const Instruction &I, const DataLayout &DL) {
  if (auto *Cast = dyn_cast<CastInst>(&I))
    return Cast->isNoopCast(DL);
  auto *Address = dyn_cast<GetElementPtrInst>(&I);
  if (!Address || Address->getType()->isVectorTy())
    return false;
  unsigned Indices = 0;
  for (auto Step = gep_type_begin(*Address), End = gep_type_end(*Address); Step != End; ++Step) {
    if (isa<Constant>(Step.getOperand()))
      continue;
    TypeSize Size = Step.getSequentialElementStride(DL);
    if (Step.isStruct() || Size.isScalable() || Size.getFixedValue() > 8 || !isPowerOf2_64(Size.getFixedValue()))
      return false;
    ++Indices;
  }
  return Indices <= 1;
}

// Whether a use folds the address.
bool folds(const Use &U, const DataLayout &DL) {
  auto *User = cast<Instruction>(U.getUser());
  if (auto *Load = dyn_cast<LoadInst>(User))
    return Load->getPointerOperandIndex() == U.getOperandNo();
  if (auto *Store = dyn_cast<StoreInst>(User))
    return Store->getPointerOperandIndex() == U.getOperandNo();
  return isFolded(*User, DL);
}

bool isUsedOutside(const Instruction &I) { return I.isUsedOutsideOfBlock(I.getParent()); }

} // namespace

void pleachRematerialiseAddresses(Function &F, const SmallPtrSetImpl<BasicBlock *> &Copied) {
  const DataLayout &DL = F.getDataLayout();
  for (BasicBlock &BB : F) {
    if (!Copied.contains(&BB))
      continue;
    // Backwards, so that an address is moved before its operands.
    for (Instruction &I : llvm::make_early_inc_range(llvm::reverse(BB))) {
      if (!isFolded(I, DL))
        continue;
      SmallVector<Use *> Elsewhere;
      bool AllFold = true;
      for (Use &U : I.uses()) {
        if (cast<Instruction>(U.getUser())->getParent() == &BB)
          continue;
        Elsewhere.push_back(&U);
        AllFold &= folds(U, DL);
      }
      // This removes the φ of one value, so at most one operand may need a φ instead.
      unsigned Joined = 0;
      for (Value *Op : I.operands())
        if (auto *From = dyn_cast<Instruction>(Op))
          Joined += Copied.contains(From->getParent()) && !isUsedOutside(*From);
      if (Elsewhere.empty() || !AllFold || Joined > 1)
        continue;
      DenseMap<BasicBlock *, Instruction *> Repeated;
      for (Use *U : Elsewhere) {
        auto *User = cast<Instruction>(U->getUser());
        Instruction *&Again = Repeated[User->getParent()];
        if (!Again) {
          Again = I.clone();
          Again->insertBefore(User->getIterator());
          Again->setName(I.getName());
        } else if (User->comesBefore(Again)) {
          Again->moveBefore(User->getIterator());
        }
        U->set(Again);
      }
      if (I.use_empty()) {
        salvageDebugInfo(I);
        I.eraseFromParent();
      }
    }
  }
}
