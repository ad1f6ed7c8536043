// Loads one element where a vector is loaded and only one of its elements is used.
//
// LLVM makes vector loads of scalar ones that become an element of a vector, where the memory beside is known to be there
// (VectorCombine). If the element was stored by itself shortly before, the processor cannot forward it to a load that is
// wider than the store, and the load waits until the store has left the store buffer. In loops, addresses are seldom
// known well enough for that; in iterations that are peeled off before vectors are formed, they are constants.
#include "pleach.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

// The elements of `Vector` that a user may read.
static uint64_t elementsRead(const Value &Vector, const User &By, unsigned Elements) {
  const uint64_t All = maskTrailingOnes<uint64_t>(Elements);
  if (const auto *Extract = dyn_cast<ExtractElementInst>(&By)) {
    const auto *Index = dyn_cast<ConstantInt>(Extract->getIndexOperand());
    return Index && Index->getValue().ult(Elements) ? uint64_t(1) << Index->getZExtValue() : All;
  }
  if (const auto *Insert = dyn_cast<InsertElementInst>(&By)) {
    const auto *Index = dyn_cast<ConstantInt>(Insert->getOperand(2));
    return Index && Index->getValue().ult(Elements) ? All & ~(uint64_t(1) << Index->getZExtValue()) : All;
  }
  const auto *Shuffle = dyn_cast<ShuffleVectorInst>(&By);
  if (!Shuffle)
    return All;
  uint64_t Read = 0;
  for (int Element : Shuffle->getShuffleMask()) {
    if (Element < 0)
      continue;
    const unsigned Operand = static_cast<unsigned>(Element) / Elements;
    if (Shuffle->getOperand(Operand) == &Vector)
      Read |= uint64_t(1) << static_cast<unsigned>(Element) % Elements;
  }
  return Read;
}

// The one element that is used of a vector that is loaded, if there is one.
static std::optional<unsigned> onlyElement(const LoadInst &Load) {
  const auto *Type = dyn_cast<FixedVectorType>(Load.getType());
  constexpr unsigned MaxElements = 64, MinBits = 32;
  if (!Type || !Load.isSimple() || Type->getNumElements() < 2 || Type->getNumElements() > MaxElements ||
      Type->getScalarType()->isPointerTy() || Type->getScalarSizeInBits() < MinBits ||
      !Load.getDataLayout().typeSizeEqualsStoreSize(Type->getScalarType()))
    return std::nullopt;
  uint64_t Read = 0;
  for (const User *By : Load.users())
    Read |= elementsRead(Load, *By, Type->getNumElements());
  return isPowerOf2_64(Read) ? std::optional(static_cast<unsigned>(Log2_64(Read))) : std::nullopt;
}

bool pleachNarrowLoads(Function &F) {
  const DataLayout &DL = F.getDataLayout();
  SmallVector<std::pair<LoadInst *, unsigned>> Wide;
  for (Instruction &I : instructions(F))
    if (auto *Load = dyn_cast<LoadInst>(&I))
      if (const auto Element = onlyElement(*Load))
        Wide.push_back({Load, *Element});
  if (Wide.empty())
    return false;
  // Objects of which an element is stored by itself.
  SmallPtrSet<const Value *, 8> Stored;
  for (Instruction &I : instructions(F))
    if (const auto *Store = dyn_cast<StoreInst>(&I); Store && !Store->getValueOperand()->getType()->isVectorTy())
      Stored.insert(getUnderlyingObject(Store->getPointerOperand()));
  bool Changed = false;
  for (auto [Load, Element] : Wide) {
    if (!Stored.contains(getUnderlyingObject(Load->getPointerOperand())))
      continue;
    auto *Type = cast<FixedVectorType>(Load->getType());
    const uint64_t Offset = Element * DL.getTypeStoreSize(Type->getScalarType());
    IRBuilder<> B(Load);
    Value *Address = B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Load->getPointerOperand(), Offset);
    LoadInst *Scalar =
        B.CreateAlignedLoad(Type->getScalarType(), Address, commonAlignment(Load->getAlign(), Offset), Load->getName());
    Load->replaceAllUsesWith(B.CreateInsertElement(PoisonValue::get(Type), Scalar, Element));
    Load->eraseFromParent();
    Changed = true;
  }
  return Changed;
}
