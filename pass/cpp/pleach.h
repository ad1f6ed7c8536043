// Everything that crosses the boundary between the C++ half and the Rust half, and what the C++ files share.
//
// The Rust mirror is src/ffi.rs. Each struct's size and offsets are asserted here and there, with the same numbers.
#ifndef PLEACH_H
#define PLEACH_H

#include "llvm-c/Types.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Pass.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#define PLEACH_SIZE(Struct, Size) static_assert(sizeof(Struct) == (Size), "mirrored in src/ffi.rs")
#define PLEACH_OFFSET(Struct, Field, Offset) static_assert(offsetof(Struct, Field) == (Offset), "mirrored in src/ffi.rs")

// ---- Host: registration, options, diagnostics ----------------------------------------------------------------------

// Text owned by the host, alive as long as the options are.
struct PleachText {
  const char *Data;
  size_t Size;
};
PLEACH_SIZE(PleachText, 16);
PLEACH_OFFSET(PleachText, Size, 8);

// The command line, read once a run.
struct PleachOptions {
  PleachText Profile;    // -pleach-use
  PleachText SecondProfile; // -pleach-use-second
  PleachText Anchor;     // -pleach-anchor
  PleachText Instrument; // -pleach-instrument
  PleachText Weights;    // -pleach-weights
  PleachText Only;       // -pleach-only
  PleachText Decisions;  // -pleach-decisions
  uint64_t RandomProfile; // a seed, 0: none
  uint64_t RandomPaths;   // a seed, 0: none
  double SuperblockMinGain;         // negative: the default
  double SuperblockMinFunctionGain; // negative: the default
  uint32_t Iterations;
  uint32_t SuperblockStage;
  bool Annotate;
  bool Summary;
  bool Superblocks;
  bool SuperblocksAggressive;
  bool Verify;
  bool Placement;
  bool AlignLoops;
  bool AlignEntries;
  bool IfConversion;
  bool IfConversionAggressive;
  bool SelectToBranch;
  bool Salvage;
  bool UnweightLogicalSelects;
  bool KeepRecursiveCalls;
  bool AnnotateLate;
  bool Switches;
};
PLEACH_SIZE(PleachOptions, 168);
PLEACH_OFFSET(PleachOptions, RandomProfile, 112);
PLEACH_OFFSET(PleachOptions, SuperblockMinGain, 128);
PLEACH_OFFSET(PleachOptions, Iterations, 144);
PLEACH_OFFSET(PleachOptions, Annotate, 152);
PLEACH_OFFSET(PleachOptions, Switches, 167);

// The stage of a run: four places in the pipeline, and the passes that `opt -passes=` runs alone.
enum PleachStage : uint32_t {
  EarlySimplification = 0,
  OptimizerLast = 1,
  OptimizerEarly = 2,
  OnlyAnnotate = 3,
  OnlyUse = 4,
  OnlyInstrument = 5,
  OnlyIfConversion = 6,
  OnlySelectToBranch = 7,
  OnlySuperblocks = 8,
  OnlyFunctionOrder = 9,
  OnlyInheritedWeights = 10,
  OptimizerEnd = 11,
  OnlySwitches = 12,
};

// Limits that the Rust half decides and that passes of the C++ half observe.
struct PleachLimits {
  int32_t EarlyInlineThreshold;
  int32_t EarlyInlineColdThreshold;
  int32_t EarlyInlineHintThreshold;
  uint32_t MaxPromotedCounters;
  uint32_t MaxLoopExits;
  uint32_t MaxIndexValues;
  uint32_t LLVMMinTripCount;
  uint32_t AssumedTripCount;
  uint32_t MaxSearchIterations;
};
PLEACH_SIZE(PleachLimits, 36);
PLEACH_OFFSET(PleachLimits, MaxPromotedCounters, 12);

// The context of a run on one module, which the Rust half passes to the functions below.
struct PleachRun {
  llvm::ModuleAnalysisManager &MAM;
  // The thresholds of hot and cold counts, once the profile's summary is set. Passes may see them later.
  std::unique_ptr<llvm::ProfileSummaryInfo> Summary = nullptr;
  // Functions that call each other recursively, once they are asked for.
  std::optional<llvm::DenseSet<const llvm::Function *>> MutuallyRecursive = std::nullopt;
};

// Runs a stage on a module; returns whether the module changed. `Phase`: llvm::ThinOrFullLTOPhase.
using PleachRunFn = bool (*)(LLVMModuleRef, PleachRun *, uint32_t Stage, uint32_t Phase);
// Whether a profile is used: decides which of clang's profile-only passes are scheduled.
using PleachUsesProfileFn = bool (*)();

// ---- Analysis ------------------------------------------------------------------------------------------------------

struct PleachTarget {
  bool IsElf;
  bool IsX86_64;
  bool IsAArch64; // little-endian
};
PLEACH_SIZE(PleachTarget, 3);
PLEACH_OFFSET(PleachTarget, IsX86_64, 1);

// Facts about one instruction that no single function of the C API returns.
struct PleachInstructionFacts {
  LLVMValueRef Callee;   // the called function, for a direct call
  uint32_t Line;         // source line in the function itself, 0 where unknown
  uint8_t IsRealInstruction;        // neither a debug nor a pseudo instruction
  uint8_t Call;          // 0 no call, 1 direct, 2 indirect, 3 inline assembly, 4 memory
  uint8_t MayNotReturn;  // of a call
  uint8_t IsEHPad;
};
PLEACH_SIZE(PleachInstructionFacts, 16);
PLEACH_OFFSET(PleachInstructionFacts, Line, 8);
PLEACH_OFFSET(PleachInstructionFacts, IsRealInstruction, 12);
PLEACH_OFFSET(PleachInstructionFacts, IsEHPad, 15);

struct PleachSummaryEntry {
  uint32_t Cutoff; // parts per million
  uint64_t MinCount;
  uint64_t NumCounts;
};
PLEACH_SIZE(PleachSummaryEntry, 24);
PLEACH_OFFSET(PleachSummaryEntry, MinCount, 8);

struct PleachSummary {
  uint64_t TotalCount;
  uint64_t MaxCount;
  uint64_t MaxInternalCount;
  uint64_t MaxFunctionCount;
  uint32_t NumCounts;
  uint32_t NumFunctions;
  const PleachSummaryEntry *Entries;
  size_t NumEntries;
};
PLEACH_SIZE(PleachSummary, 56);
PLEACH_OFFSET(PleachSummary, NumCounts, 32);
PLEACH_OFFSET(PleachSummary, Entries, 40);

// The callee of the only call of a local function.
struct PleachOnlyCall {
  uint64_t Instructions;
  uint64_t StackBytes;
};
PLEACH_SIZE(PleachOnlyCall, 16);
PLEACH_OFFSET(PleachOnlyCall, StackBytes, 8);

// An innermost loop, as the alignment of its header needs it; or a dispatch, with what falls into it as its entries.
struct PleachLoop {
  uint64_t Instructions;
  double Iterations;
  double Entries;
};
PLEACH_SIZE(PleachLoop, 24);
PLEACH_OFFSET(PleachLoop, Entries, 16);

// The alignment of a loop or dispatch in a program that executes `Total` blocks; 1 keeps LLVM's alignment, 64 puts a
// dispatch in the second half of a line.
using PleachAlignmentFn = uint32_t (*)(const PleachLoop *, double Total);

// ---- Transformations -----------------------------------------------------------------------------------------------

// A marker: this code comes from a block of a recorded function.
struct PleachMarker {
  uint64_t Key;              // of the recorded function
  LLVMMetadataRef InlinedAt; // differs for each inline instance; null in the function itself
  uint32_t Index;            // of the recorded block
  uint32_t Block;            // where it is now
};
PLEACH_SIZE(PleachMarker, 24);
PLEACH_OFFSET(PleachMarker, InlinedAt, 8);
PLEACH_OFFSET(PleachMarker, Block, 20);

// A node of the graph that a function will have: a block or a copy of one, and the targets of its successor slots.
struct PleachNode {
  uint32_t Origin;
  const uint32_t *Successors;
  size_t Count;
};
PLEACH_SIZE(PleachNode, 24);
PLEACH_OFFSET(PleachNode, Successors, 8);
PLEACH_OFFSET(PleachNode, Count, 16);

// The cost of if-converting a branch, in instructions.
struct PleachArms {
  double Executed[2]; // of each arm with its inner branches if-converted
  double Needed[2];   // of each arm on average with its inner branches
  double Selects;     // that replace the branch
  double Shared;      // accesses that both arms have in common
  double Probability; // of the first arm
  double Rate;        // lower bound of the misprediction rate; 0: unknown
  // Cycles from the results of unpredictable branches, this one or others, to the condition; negative if it depends on
  // none of them.
  double Chain;
  double Results[2];  // cycles that each arm takes to compute its values
};
PLEACH_SIZE(PleachArms, 88);
PLEACH_OFFSET(PleachArms, Results, 72);
PLEACH_OFFSET(PleachArms, Needed, 16);
PLEACH_OFFSET(PleachArms, Selects, 32);
PLEACH_OFFSET(PleachArms, Rate, 56);
PLEACH_OFFSET(PleachArms, Chain, 64);

// The cost of joining two tests in a row.
struct PleachTests {
  double Size;              // instructions of the second test
  double Selects;           // that guard its loads, and choose values
  double FirstSucceeds;     // probability that the second test is made
  double SecondSucceeds;    // probability that it succeeds then
  double Rate;              // lower bound of the first test's misprediction rate; 0: unknown
  double Results;           // cycles that the second test takes to compute its values
  bool IsLoopCarried;       // the first test of the next iteration depends on the values
};
PLEACH_SIZE(PleachTests, 56);
PLEACH_OFFSET(PleachTests, IsLoopCarried, 48);
PLEACH_OFFSET(PleachTests, Rate, 32);

// Cycles from an instruction's operands to its result.
struct PleachLatencies {
  double Load;
  double Division;
  double Move; // φs, casts, and parts of aggregates
  double Intrinsic;
  double Call;
  double Multiply; // and floating point
  double Other;
};
PLEACH_SIZE(PleachLatencies, 56);
PLEACH_OFFSET(PleachLatencies, Other, 48);

// Selects of one condition, in one block, on a loop-carried chain.
struct PleachLoopCarriedSelect {
  LLVMValueRef Select; // the first of them
  // Cycles from the start of an iteration to the condition, and to the values that the next iteration depends on: as it
  // is, and if the selects did not wait for their condition.
  double Condition;
  double Waiting;
  double Predicted;
};
PLEACH_SIZE(PleachLoopCarriedSelect, 32);
PLEACH_OFFSET(PleachLoopCarriedSelect, Condition, 8);

// A switch that is executed often.
struct PleachSwitch {
  LLVMValueRef Switch;
  double Executions;
  double DefaultWeight;
  // The interval of the share of executions of which a predictor does not tell the destination, in thousandths; negative
  // if it is not known.
  int32_t MispredictedLow;
  int32_t MispredictedHigh;
  uint32_t Ranges;
  bool DefaultIsPossible;
};
PLEACH_SIZE(PleachSwitch, 40);
PLEACH_OFFSET(PleachSwitch, MispredictedLow, 24);
PLEACH_OFFSET(PleachSwitch, DefaultIsPossible, 36);

// Adjacent cases of a switch with the same destination.
struct PleachCaseRange {
  int64_t First;
  int64_t Last;
  double Weight;
  uint32_t Destination;
};
PLEACH_SIZE(PleachCaseRange, 32);
PLEACH_OFFSET(PleachCaseRange, Destination, 24);

// ---- Exact counting ------------------------------------------------------------------------------------------------

enum PleachOpKind : uint32_t { OpSet = 0, OpAdd = 1, OpCountConst = 2, OpCountRegister = 3 };

struct PleachOp {
  uint32_t Kind;
  int64_t Value;
};
PLEACH_SIZE(PleachOp, 16);
PLEACH_OFFSET(PleachOp, Value, 8);

struct PleachOps {
  const PleachOp *Data;
  size_t Count;
  llvm::ArrayRef<PleachOp> get() const { return llvm::ArrayRef(Data, Count); }
};
PLEACH_SIZE(PleachOps, 16);

struct PleachEdge {
  uint32_t From;
  uint32_t To;
  PleachOps Ops;
};
PLEACH_SIZE(PleachEdge, 24);
PLEACH_OFFSET(PleachEdge, Ops, 8);

struct PleachBlock {
  uint32_t Block;
  PleachOps Ops; // of a record: one count
};
PLEACH_SIZE(PleachBlock, 24);
PLEACH_OFFSET(PleachBlock, Ops, 8);

struct PleachResume {
  LLVMValueRef Call;
  PleachOps Ops;
};
PLEACH_SIZE(PleachResume, 24);
PLEACH_OFFSET(PleachResume, Ops, 8);

// How control returns from a call, by the callee's name.
enum PleachCallKind : uint32_t {
  OrdinaryCall = 0,
  EndsThread = 1,
  Setjmp = 2,
  Longjmp = 3,
  Vfork = 4,
};
using PleachCallKindFn = uint32_t (*)(const char *Name, size_t Size);

struct PleachPlan {
  PleachOps Entry;
  const PleachEdge *Edges;
  size_t EdgeCount;
  const PleachBlock *Exits;
  size_t ExitCount;
  const PleachBlock *Records;
  size_t RecordCount;
  const PleachResume *Resumes;
  size_t ResumeCount;
  uint64_t Word;   // first counter in the unit's array
  uint64_t Base;   // of a window's digits
  uint32_t Window; // paths counted together
  uint32_t Hashed; // 1 + position among the unit's hash-counted functions, 0 for an array
  uint32_t Tag;    // of the unit's records
  PleachCallKindFn CallKind;
};
PLEACH_SIZE(PleachPlan, 120);
PLEACH_OFFSET(PleachPlan, Edges, 16);
PLEACH_OFFSET(PleachPlan, Word, 80);
PLEACH_OFFSET(PleachPlan, Window, 96);
PLEACH_OFFSET(PleachPlan, Tag, 104);
PLEACH_OFFSET(PleachPlan, CallKind, 112);

// A hash-counted function of a unit: `struct hashed` in runtime/layout.h.
struct PleachHashed {
  uint64_t Function;
  uint64_t Word;
};
PLEACH_SIZE(PleachHashed, 16);
PLEACH_OFFSET(PleachHashed, Word, 8);

// ---- Functions that Rust calls -------------------------------------------------------------------------------------

extern "C" {

// host/plugin.cpp
void pleach_register(void *PassBuilder, PleachRunFn Run, PleachUsesProfileFn UsesProfile, const PleachLimits *Limits);
uint32_t pleach_plugin_api_version();
size_t pleach_plugin_info_size();

// host/options.cpp
void pleach_read_options(PleachOptions *Out);
bool pleach_set_host_option(const char *Name, size_t NameSize, const char *Value, size_t ValueSize);
void pleach_import_callees_of_cold_calls();

// host/diagnostics.cpp
void pleach_diagnose(LLVMModuleRef M, const char *Text, size_t Size, bool IsFatal);
bool pleach_remarks_enabled(LLVMModuleRef M);
// A piece of a remark: a named value, or plain text, whose name is "String".
typedef struct {
  const char *Name;
  const char *Text;
  size_t Size;
} PleachRemarkPiece;
PLEACH_SIZE(PleachRemarkPiece, 24);
PLEACH_OFFSET(PleachRemarkPiece, Text, 8);
PLEACH_OFFSET(PleachRemarkPiece, Size, 16);
void pleach_remark(LLVMValueRef F, bool Passed, const char *Name, const PleachRemarkPiece *Pieces, size_t Count);

// host/code_generation.cpp
void pleach_set_target_options(void *TargetMachine, bool Split);
bool pleach_may_align(void *TargetMachine);
bool pleach_assembles_itself(void *TargetMachine);
bool pleach_emits_debug_info(LLVMModuleRef M);
uint32_t pleach_align_loops(LLVMValueRef F, PleachAlignmentFn Decide);
void pleach_keep_host_block_order(LLVMValueRef F);
uint32_t pleach_prepare_computed_gotos(LLVMModuleRef M);
void pleach_move_to_end(LLVMValueRef F);

// host/dispatch_alignment.cpp
void pleach_register_code_generation(PleachUsesProfileFn UsesProfile, PleachAlignmentFn Decide);

// host/probe_order.cpp
void pleach_register_probe_order();

// analysis/facts.cpp
void pleach_target(LLVMModuleRef M, PleachTarget *Out);
bool pleach_chooses_extreme(LLVMValueRef Terminator);
void pleach_instruction_facts(LLVMValueRef Instruction, PleachInstructionFacts *Out);
bool pleach_is_replaceable(LLVMValueRef F);
uint64_t pleach_value_profile_id(LLVMValueRef F);
bool pleach_only_call(PleachRun *Run, LLVMValueRef Call, PleachOnlyCall *Out);

// analysis/frequencies.cpp
bool pleach_frequencies(LLVMValueRef F, double *Counts, double *Probabilities);
double pleach_execution_share(LLVMValueRef F);
void pleach_set_max_module_flag(LLVMModuleRef M, const char *Name, size_t Size, uint32_t Value);
void pleach_set_irreducible_headers(LLVMModuleRef M, LLVMValueRef F, const uint64_t *Counts, size_t Count);
void pleach_set_short_visits(const LLVMValueRef *Latches, size_t LatchCount, const uint32_t *Permille,
                             size_t PermilleCount, uint32_t Rest);
void pleach_mark_steady_loop(const LLVMValueRef *Latches, size_t LatchCount);
size_t pleach_unsampled_blocks(LLVMValueRef F, uint32_t Cutoff, LLVMBasicBlockRef *Found);

// analysis/profile_summary.cpp
void pleach_set_profile_summary(LLVMModuleRef M, PleachRun *Run, const PleachSummary *S, bool AtOnce);
bool pleach_is_hot_count(PleachRun *Run, uint64_t Count);
bool pleach_is_cold_count(PleachRun *Run, uint64_t Count);

// analysis/duplication.cpp
bool pleach_may_duplicate(LLVMValueRef F, bool AlsoWhereSmall);
void pleach_duplicable(LLVMValueRef F, bool Early, uint8_t *Duplicable);
void pleach_loops(LLVMValueRef F, uint8_t *Tight, uint8_t *Dispatching);

// analysis/duplication_simulation.cpp
void pleach_simulate_duplication(const LLVMBasicBlockRef *Trace, size_t Count, uint32_t *Saved);

// transform/probes.cpp
void pleach_ensure_subprogram(LLVMValueRef F, LLVMMetadataRef *Unit);
void pleach_set_call_probe(LLVMValueRef Call, uint32_t Index, bool IsDirect, bool IsEarly);
void pleach_set_probe_location(LLVMValueRef Probe, LLVMValueRef Position);
void pleach_erase_named_metadata(LLVMModuleRef M, const char *Name, size_t Size);

// transform/markers.cpp
void pleach_insert_marker(LLVMBasicBlockRef Block, uint64_t Key, uint32_t Index);
size_t pleach_take_markers(LLVMValueRef F, PleachMarker *Found, size_t Capacity);

// transform/duplicate_blocks.cpp
bool pleach_duplicate_blocks(LLVMValueRef F, const PleachNode *Nodes, size_t Count);
void pleach_remove_dead_blocks(LLVMValueRef F);
void pleach_prevent_tail_merge(const LLVMBasicBlockRef *Blocks, size_t Count);

// transform/if_conversion.cpp
bool pleach_may_if_convert(LLVMValueRef F);
bool pleach_arms(LLVMValueRef Terminator, bool Any, const PleachLatencies *Latencies, PleachArms *Out);
void pleach_if_convert(LLVMValueRef Terminator);
bool pleach_tests(LLVMValueRef Terminator, bool Any, const PleachLatencies *Latencies, PleachTests *Out);
void pleach_join_tests(LLVMValueRef Terminator);

// transform/select_to_branch.cpp
size_t pleach_find_loop_carried_selects(LLVMValueRef F, const PleachLatencies *Latencies,
                                        PleachLoopCarriedSelect *Found, size_t Capacity);
void pleach_select_to_branch(LLVMValueRef Select);

// transform/switches.cpp
size_t pleach_find_hot_switches(LLVMValueRef F, uint32_t MinRanges, bool Any, PleachSwitch *Found,
                                size_t Capacity);
void pleach_switch_ranges(LLVMValueRef Switch, PleachCaseRange *Out);
void pleach_compare_before_switch(LLVMValueRef Switch, const uint32_t *Ranges, size_t Count);

// transform/logical_selects.cpp
bool pleach_unweight_logical_selects(LLVMModuleRef M);

// transform/recorded_rates.cpp
void pleach_put_rates_back(LLVMValueRef F);

// transform/returns.cpp
bool pleach_return_after_tail_calls(LLVMModuleRef M);

// count/instrument.cpp
const char *pleach_cannot_instrument(LLVMValueRef F, const PleachPlan *Plan);
const char *pleach_instrument(LLVMValueRef F, LLVMValueRef Slot, const PleachPlan *Plan);

// count/unit.cpp
LLVMValueRef pleach_make_unit(LLVMModuleRef M, const char *Description, size_t Size, uint64_t Id, uint64_t Words,
                              uint32_t Tag, const PleachHashed *Hashed, size_t HashedCount);

// count/counter_lowering.cpp
const char *pleach_lower_counters(LLVMModuleRef M, const char *Runtime, size_t Size);

} // extern "C"

// ---- Shared by C++ files -------------------------------------------------------------------------------------------

// Attribute of hot functions until the profile is revealed to the inliner.
constexpr char PleachHotAttribute[] = "pleach-hot";
// Attribute of calls that are inlined because they are a function's only ones, until the function is simplified.
constexpr char PleachOnlyCallAttribute[] = "pleach-only-call";
// Metadata of calls that compare memory, or of mempcpy, with their lengths, until LLVM may specialise them
// (src/ir/metadata.rs).
constexpr char PleachLengthsMetadata[] = "pleach.lengths";
// Metadata of switches of the source: the interval of the share of executions of which a predictor does not tell the
// destination, in thousandths (src/ir/metadata.rs).
constexpr char PleachSwitchMetadata[] = "pleach.switch";
// Metadata of divisions with their most frequent divisor, its count and that of all divisors (src/ir/metadata.rs).
constexpr char PleachDivisorMetadata[] = "pleach.divisor";
// Attribute of functions that were not executed, until the profile is revealed to the inliner.
constexpr char PleachNotExecutedAttribute[] = "pleach-not-executed";
// Attribute of functions without samples (src/use_profile/unsampled.rs).
constexpr char PleachUnsampledAttribute[] = "pleach-unsampled";
// Attribute of functions that only such functions call, and the mark of instructions whose weights are the profile's.
constexpr char PleachKeepsWeightsAttribute[] = "pleach-keeps-weights";
constexpr char PleachSampledMetadata[] = "pleach.sampled";

// Module flag: the profile has so few bursts that it does not tell how often loops run.
constexpr char PleachFewBurstsFlag[] = "pleach.few-bursts";

// Attribute of functions with duplicated blocks until they are cleaned up.
constexpr char PleachDuplicatedAttribute[] = "pleach-duplicated";

// Emits a counter's increment by `Step` for the unit of `Slot`: at `Index` of its array, or, if `Hashed` is not 0, of
// the number `Index` in the table of the unit's hash-counted function `Hashed - 1`, whose words begin at `Word`.
void pleachEmitCount(llvm::IRBuilderBase &B, llvm::Value *Slot, llvm::Value *Index, uint32_t Hashed,
                     uint32_t Word, llvm::Value *Step);

// Promotes the counters of a function's innermost loops to registers; returns whether anything changed.
bool pleachPromoteCounters(llvm::Function &F, const PleachLimits &Limits);

// Peels loops that run few times by the profile, and keeps them from being vectorised with predicated accesses; returns
// whether code changed.
bool pleachPeelShortLoops(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const PleachLimits &Limits);
// Loads single elements in place of vectors of which nothing else is used; returns whether anything changed.
bool pleachNarrowLoads(llvm::Function &F);
// Has values that LLVM's code generation would set too late for landing pads go through memory; returns whether any do.
bool pleachSeparateLandingPads(llvm::Function &F);
// Hides recorded misprediction rates from LLVM, until if-conversion.
void pleachSetRatesAside(llvm::Function &F);
// Makes signed divisions of loops' values that are never negative unsigned; returns whether anything changed.
bool pleachMakeDivisionsUnsigned(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
void pleachLeaveSearches(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const PleachLimits &Limits);

// Takes the probes that keep loops from being vectorised out of their blocks; returns whether anything changed.
bool pleachSetProbesAside(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
// Puts probes back into loops that were not vectorised; returns whether anything changed.
bool pleachPutProbesBack(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
// Moves probes up in their blocks, but not across calls: stores around them can then be combined.
void pleachHoistProbes(llvm::Function &F);

// Keeps InstCombine, before which it runs, from losing the lengths of library calls: replaces mempcpy by memcpy itself, and
// makes memcmp no builtin, unless another pipeline follows where nothing would reveal its lengths, that of a linker.
struct PleachKeepLengthsPass : llvm::PassInfoMixin<PleachKeepLengthsPass> {
  bool IsBeforeLink;

  explicit PleachKeepLengthsPass(llvm::ThinOrFullLTOPhase Phase = llvm::ThinOrFullLTOPhase::None)
      : IsBeforeLink(Phase == llvm::ThinOrFullLTOPhase::ThinLTOPreLink ||
                     Phase == llvm::ThinOrFullLTOPhase::FullLTOPreLink) {}

  llvm::PreservedAnalyses run(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
};

// Shows the lengths to LLVM's pass that gives frequent ones code of their own.
struct PleachRevealLengthsPass : llvm::PassInfoMixin<PleachRevealLengthsPass> {
  static bool isRequired() { return true; } // otherwise memcmp would remain no builtin
  llvm::PreservedAnalyses run(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
};

// LLVM's pass that gives frequent lengths code of their own, in functions that have lengths: it computes frequencies first.
struct PleachSpecialiseLengthsPass : llvm::PassInfoMixin<PleachSpecialiseLengthsPass> {
  llvm::PreservedAnalyses run(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
};

// Compares the divisor of divisions with the most frequent one, by which the division is fast.
struct PleachDivideByFrequentPass : llvm::PassInfoMixin<PleachDivideByFrequentPass> {
  llvm::PreservedAnalyses run(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
};

// Simplifies a function after duplication; returns whether anything changed.
bool pleachCleanUpDuplicates(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);

// Rematerialises addresses in the blocks that use them, if code generation folds them into loads and stores.
void pleachRematerialiseAddresses(llvm::Function &F, const llvm::SmallPtrSetImpl<llvm::BasicBlock *> &Copied);

// Adds passes that inline what must be inlined, and simplify the callers.
void pleachInlineMandatory(llvm::ModulePassManager &MPM);

// Adds passes that inline small callees and simplify the callers.
void pleachInlineSmallCallees(llvm::ModulePassManager &MPM, llvm::ThinOrFullLTOPhase Phase, const PleachLimits &Limits);

// Adds the passes that run after each function that the inliner simplifies: weights that stay lose their marks, and only
// calls are inlined.
void pleachAfterInlining(llvm::CGSCCPassManager &CGPM);

// Adds the pass that raises each function's count of entries to that of its calls.
void pleachRaiseEntryCounts(llvm::ModulePassManager &MPM);

// Adds the pass that reveals the profile to the inliner.
void pleachEnableProfileSummary(llvm::ModulePassManager &MPM);

// Which optional passes the user wants, and what their options ask for.
struct PleachHostPasses {
  bool PromoteIndirectCalls;
  bool SpecialiseLengths;
  bool SpecialiseDivisors;
  bool InlineSmallCallees;
  bool ReduceControlHeight;
  bool PeelShortLoops;
  bool LeaveSearches;
  // Blocks are identified or counted.
  bool IdentifyBlocks;
  // They are, or a profile is used, before inlining.
  bool WorkEarly;
  // Optimised code is identified, or placed by a second profile.
  bool SecondRound;
};
PleachHostPasses pleachHostPasses();

#endif
