// Gives divisions by a frequent divisor code of their own: a multiplication by its inverse, or a shift.
#include "pleach.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {

// The most frequent divisor of a division, and how often it and all divisors were seen.
struct Frequent {
  uint64_t Divisor;
  uint64_t Count;
  uint64_t Total;
};

std::optional<Frequent> frequentDivisor(const BinaryOperator &Division) {
  const MDNode *Known = Division.getMetadata(PleachDivisorMetadata);
  if (!Known || Known->getNumOperands() != 3 || isa<Constant>(Division.getOperand(1)))
    return std::nullopt;
  uint64_t Numbers[3];
  for (unsigned At = 0; At < 3; ++At) {
    const auto *Number = mdconst::dyn_extract<ConstantInt>(Known->getOperand(At));
    if (!Number)
      return std::nullopt;
    Numbers[At] = Number->getZExtValue();
  }
  return Frequent{Numbers[0], Numbers[1], Numbers[2]};
}

bool isSigned(const BinaryOperator &Division) {
  return Division.getOpcode() == Instruction::SDiv || Division.getOpcode() == Instruction::SRem;
}

// Quotient and remainder of one division in a block: the processor computes both at once.
SmallVector<BinaryOperator *, 2> sameDivision(BinaryOperator &First) {
  SmallVector<BinaryOperator *, 2> All{&First};
  for (Instruction &I : make_range(std::next(First.getIterator()), First.getParent()->end())) {
    auto *Other = dyn_cast<BinaryOperator>(&I);
    if (Other && Other->isIntDivRem() && isSigned(*Other) == isSigned(First) &&
        Other->getOperand(0) == First.getOperand(0) && Other->getOperand(1) == First.getOperand(1))
      All.push_back(Other);
  }
  return All;
}

// A divisor that is poison or undefined is undefined behaviour in the division, and so may be in the comparison.
void specialise(BinaryOperator &First, const Frequent &Known) {
  const SmallVector<BinaryOperator *, 2> All = sameDivision(First);
  auto *Type = cast<IntegerType>(First.getType());
  auto *Divisor = ConstantInt::get(Type, APInt(Type->getBitWidth(), Known.Divisor, false, /*implicitTrunc=*/true));
  IRBuilder<> Builder(&First);
  Value *IsFrequent = Builder.CreateICmpEQ(First.getOperand(1), Divisor);
  // Weights have 32 bits.
  uint64_t Often = std::max<uint64_t>(Known.Count, 1), Otherwise = std::max<uint64_t>(Known.Total - Known.Count, 1);
  while (Often > UINT32_MAX || Otherwise > UINT32_MAX) {
    Often = (Often + 1) / 2;
    Otherwise = (Otherwise + 1) / 2;
  }
  MDNode *Weights = MDBuilder(First.getContext()).createBranchWeights(Often, Otherwise);
  Instruction *Then, *Else;
  SplitBlockAndInsertIfThenElse(IsFrequent, First.getIterator(), &Then, &Else, Weights);
  BasicBlock *After = First.getParent();
  for (BinaryOperator *Division : All) {
    Division->setMetadata(PleachDivisorMetadata, nullptr);
    Instruction *Fast = Division->clone();
    Fast->setOperand(1, Divisor);
    Fast->insertBefore(Then->getIterator());
    Division->moveBefore(Else->getIterator());
    auto *Result = PHINode::Create(Type, 2, "", After->getFirstNonPHIIt());
    Division->replaceAllUsesWith(Result);
    Result->addIncoming(Fast, Then->getParent());
    Result->addIncoming(Division, Else->getParent());
    Result->setDebugLoc(Division->getDebugLoc());
    Result->takeName(Division);
  }
}

} // namespace

PreservedAnalyses PleachDivideByFrequentPass::run(Function &F, FunctionAnalysisManager &) {
  if (F.hasOptSize())
    return PreservedAnalyses::all();
  SmallVector<BinaryOperator *, 8> Found;
  for (BasicBlock &B : F)
    for (Instruction &I : B) {
      auto *Division = dyn_cast<BinaryOperator>(&I);
      if (Division && Division->isIntDivRem() && Division->getType()->isIntegerTy() &&
          Division->hasMetadata() && frequentDivisor(*Division))
        Found.push_back(Division);
    }
  bool Changed = false;
  // The rest of a pair has no metadata any more.
  for (BinaryOperator *Division : Found)
    if (std::optional<Frequent> Known = frequentDivisor(*Division)) {
      specialise(*Division, *Known);
      Changed = true;
    }
  return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
