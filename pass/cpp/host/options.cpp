// The plugin's own options, and those of the host that it sets.
#include "pleach.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace {

cl::opt<bool> Annotate("pleach-annotate",
                       cl::desc("Give IR blocks identifiers that emitted code carries"));
cl::opt<std::string> UseProfile("pleach-use", cl::value_desc("profile"),
                         cl::desc("Optimise with this pleach profile"));
cl::opt<std::string> UseSecondProfile("pleach-use-second", cl::value_desc("profile"),
                                      cl::desc("Place code by this profile of a build with -pleach-use"));
cl::opt<bool> AnnotateLate("pleach-annotate-late",
                           cl::desc("Give the blocks of code that -pleach-use optimised identifiers"));
cl::opt<std::string> AnchorName("pleach-anchor", cl::init(""), cl::value_desc("early|late"),
                                cl::desc("Where in the pipeline IR is identified (default: early)"));
cl::opt<std::string> Instrument("pleach-instrument", cl::value_desc("paths|edges"),
                                cl::desc("Count every path, or every edge, exactly"));
cl::opt<unsigned> Iterations("pleach-iterations", cl::init(1),
                             cl::desc("Consecutive paths of an activation that are counted together (1 to 4)"));
cl::opt<std::string> Weights("pleach-weights", cl::value_desc("profile"),
                             cl::desc("Place counters by this pleach profile instead of by static estimates"));
cl::opt<std::string> Only("pleach-only", cl::Hidden, cl::value_desc("optimisation[:function[:number]]|none"),
                          cl::desc("Take only these decisions; branch weights are always set"));
cl::opt<std::string> Decisions("pleach-decisions", cl::Hidden, cl::value_desc("file"),
                               cl::desc("Append a line for each decision to this file"));
cl::opt<bool> Summary("pleach-summary",
                      cl::desc("Print one line per module on what was done with the profile"));
cl::opt<uint64_t> RandomProfile("pleach-random", cl::Hidden, cl::value_desc("seed"),
                                cl::desc("Optimise with random profiles instead of recorded ones"));
cl::opt<uint64_t> RandomPaths("pleach-random-paths", cl::Hidden, cl::value_desc("seed"),
                              cl::desc("Shuffle the path counts of each function"));
// Not read. Its value changes with the profile and the plugin, so that compiler caches miss.
cl::opt<std::string> Id("pleach-id", cl::Hidden, cl::value_desc("digest"),
                        cl::desc("Identifies the contents of profile and plugin"));
cl::opt<bool> Salvage("pleach-salvage", cl::init(true),
                      cl::desc("Use the profiles of older versions of functions that changed (default: on)"));
cl::opt<bool> UnweightLogicalSelects("pleach-unweight-logical-selects", cl::init(true), cl::Hidden,
                             cl::desc("Remove the weights of selects that join conditions by && or ||, so that they are not made branches"));
cl::opt<bool> KeepRecursiveCalls("pleach-keep-recursive-calls", cl::init(true), cl::Hidden,
                                 cl::desc("Do not inline rare calls that would make a hot function recursive"));
cl::opt<bool> Promote("pleach-icall-promotion", cl::init(true), cl::Hidden,
                      cl::desc("Promote indirect calls with profiled targets"));
cl::opt<bool> SpecialiseLengths("pleach-memory-lengths", cl::init(true), cl::Hidden,
                                cl::desc("Specialise memory operations for their most frequent lengths"));
cl::opt<bool> SpecialiseDivisors("pleach-divisors", cl::init(true), cl::Hidden,
                                 cl::desc("Specialise divisions for their most frequent divisor"));
cl::opt<bool> SmallFirst("pleach-small-callees-first", cl::init(true), cl::Hidden,
                         cl::desc("Inline small callees before the inlining that uses the profile"));
cl::opt<bool> ReduceHeight("pleach-control-height-reduction", cl::init(true), cl::Hidden,
                           cl::desc("Run control-height reduction at -O3, as -fprofile-use does"));
cl::opt<bool> PeelShortLoops("pleach-short-loops", cl::init(true), cl::Hidden,
                              cl::desc("Peel loops that run few times by the profile before they are vectorised"));
cl::opt<bool> LeaveSearches("pleach-unpeeled-searches", cl::init(true), cl::Hidden,
                            cl::desc("Do not peel loops whose next load depends on a select by the last one"));
cl::opt<bool> SelectToBranch("pleach-select-to-branch", cl::init(true), cl::Hidden,
                             cl::desc("Turn selects on loop-carried chains into branches"));
cl::opt<bool> Switches("pleach-switches", cl::init(true), cl::Hidden,
                       cl::desc("Compare with frequent cases of unpredictable switches before their tables of jumps"));
cl::opt<bool> IfConversion("pleach-if-conversion", cl::init(true), cl::Hidden,
                           cl::desc("If-convert branches that are often mispredicted"));
cl::opt<bool> IfConversionAggressive("pleach-if-conversion-aggressive", cl::Hidden,
                                     cl::desc("If-convert every possible branch, for tests"));
cl::opt<bool> Placement("pleach-placement", cl::init(true), cl::Hidden,
                        cl::desc("Order blocks and functions, and split functions, by the profile"));
cl::opt<bool> AlignLoops("pleach-align-loops", cl::init(true), cl::Hidden,
                         cl::desc("Align loops to fetch windows where the profile shows that it is profitable"));
cl::opt<bool> AlignEntries("pleach-align-entries", cl::init(true), cl::Hidden,
                           cl::desc("Align the entries of hot functions to cache lines"));

cl::opt<bool> Superblocks("pleach-superblocks", cl::init(true),
                          cl::desc("Form superblocks along the profile's paths (default: on)"));
cl::opt<unsigned> SuperblockStage(
    "pleach-superblock-stage", cl::init(2), cl::Hidden,
    cl::desc("Stage that forms superblocks: 0 before inlining, 1 before vectorisation, 2 at the end"));
cl::opt<double> SuperblockMinGain(
    "pleach-superblock-min-gain", cl::init(-1), cl::Hidden,
    cl::desc("Minimum gain of a copied instruction, as a share of all executions, instead of the default"));
cl::opt<double> SuperblockMinFunctionGain(
    "pleach-superblock-min-function-gain", cl::init(-1), cl::Hidden,
    cl::desc("Minimum gain of a function's superblocks, as a share of its instructions, instead of the default"));
cl::opt<bool> SuperblocksAggressive("pleach-superblocks-aggressive", cl::Hidden,
                         cl::desc("Form superblocks wherever possible, for tests"));
cl::opt<bool> Verify("pleach-verify", cl::Hidden,
                     cl::desc("Check each function that superblocks changed, for tests"));

PleachText text(const std::string &Option) { return {Option.data(), Option.size()}; }

} // namespace

PleachHostPasses pleachHostPasses() {
  const bool IdentifyBlocks = Annotate || !Instrument.empty();
  const bool WorkEarly = AnchorName != "late";
  const bool SecondRound = AnnotateLate || !UseSecondProfile.empty();
  return {Promote,         SpecialiseLengths, SpecialiseDivisors, SmallFirst, ReduceHeight,
          PeelShortLoops, LeaveSearches,     IdentifyBlocks,     WorkEarly,  SecondRound};
}

extern "C" {

void pleach_read_options(PleachOptions *Out) {
  Out->Profile = text(UseProfile);
  Out->SecondProfile = text(UseSecondProfile);
  Out->Anchor = text(AnchorName);
  Out->Instrument = text(Instrument);
  Out->Weights = text(Weights);
  Out->Only = text(Only);
  Out->Decisions = text(Decisions);
  Out->RandomProfile = RandomProfile;
  Out->RandomPaths = RandomPaths;
  Out->SuperblockMinGain = SuperblockMinGain;
  Out->SuperblockMinFunctionGain = SuperblockMinFunctionGain;
  Out->Iterations = Iterations;
  Out->SuperblockStage = SuperblockStage;
  Out->Annotate = Annotate;
  Out->Summary = Summary;
  Out->Superblocks = Superblocks;
  Out->SuperblocksAggressive = SuperblocksAggressive;
  Out->Verify = Verify;
  Out->Placement = Placement;
  Out->AlignLoops = AlignLoops;
  Out->AlignEntries = AlignEntries;
  Out->IfConversion = IfConversion;
  Out->IfConversionAggressive = IfConversionAggressive;
  Out->SelectToBranch = SelectToBranch;
  Out->Switches = Switches;
  Out->Salvage = Salvage;
  Out->UnweightLogicalSelects = UnweightLogicalSelects;
  Out->KeepRecursiveCalls = KeepRecursiveCalls;
  Out->AnnotateLate = AnnotateLate;
}

// Sets an option of the host or of ours, unless the user has set it. Returns whether there is one of that name which
// takes the value.
bool pleach_set_host_option(const char *Name, size_t NameSize, const char *Value, size_t ValueSize) {
  StringRef Key(Name, NameSize);
  auto &Options = cl::getRegisteredOptions();
  auto Found = Options.find(Key);
  if (Found == Options.end())
    return false;
  return Found->second->getNumOccurrences() > 0 ||
         !Found->second->addOccurrence(0, Key, StringRef(Value, ValueSize));
}

// Sets the share of its size limit that ThinLTO grants callees of cold calls, unless the user has set it. With all of it,
// what is imported and inlined is in the way of what is hot (a Rust program takes 2 % more time).
void pleach_import_callees_of_cold_calls() {
  constexpr float Share = 0.5f;
  auto &Options = cl::getRegisteredOptions();
  auto Found = Options.find("import-cold-multiplier");
  if (Found == Options.end())
    return;
  auto *Multiplier = static_cast<cl::opt<float> *>(Found->second);
  // rustc sets it itself.
  const bool IsFromRustc = Multiplier->getNumOccurrences() == 1 && Multiplier->getValue() == 0.1f;
  if (Multiplier->getNumOccurrences() == 0 || IsFromRustc)
    Multiplier->setValue(Share);
}

} // extern "C"
