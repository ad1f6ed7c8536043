/* Shader to SPIR-V by glslang's C++ interface: front end, linker, code generation, disassembly, reflection. */
#include "translate.h"

#include "SPIRV/GlslangToSpv.h"
#include "SPIRV/disassemble.h"
#include "glslang/Public/ResourceLimits.h"
#include "glslang/Public/ShaderLang.h"

#include <sstream>
#include <string>
#include <vector>

namespace {

struct Stage {
    const char *extension;
    EShLanguage language;
};

const Stage stages[] = {
    {"vert", EShLangVertex},        {"tesc", EShLangTessControl}, {"tese", EShLangTessEvaluation},
    {"geom", EShLangGeometry},      {"frag", EShLangFragment},    {"comp", EShLangCompute},
    {"rgen", EShLangRayGen},        {"rint", EShLangIntersect},   {"rahit", EShLangAnyHit},
    {"rchit", EShLangClosestHit},   {"rmiss", EShLangMiss},       {"rcall", EShLangCallable},
    {"task", EShLangTask},          {"mesh", EShLangMesh},
};

const Stage *stage_of(const std::string &name)
{
    std::string extension = name.substr(name.rfind('.') + 1);
    for (const Stage &stage : stages)
        if (extension == stage.extension)
            return &stage;
    return nullptr;
}

/* HLSL names its entry point from outside; these are the names that the shaders use. */
const char *entry_point(const std::string &source)
{
    for (const char *name : {"PixelShaderFunction", "VertexShaderFunction", "main_frag", "main_vert"})
        if (source.find(name) != std::string::npos)
            return name;
    return "main";
}

} // namespace

void start_translator(void)
{
    glslang::InitializeProcess();
}

void stop_translator(void)
{
    glslang::FinalizeProcess();
}

int translate_shader(const char *name, const char *source, size_t size, output_sink sink, void *context)
{
    const Stage *stage = stage_of(name);
    if (!stage)
        return -1;
    auto put = [&](const std::string &text) { sink(context, text.data(), text.size()); };
    const std::string text(source, size);
    const bool hlsl = std::string(name).compare(0, 5, "hlsl.") == 0;

    glslang::TShader shader(stage->language);
    const int length = static_cast<int>(size);
    shader.setStringsWithLengthsAndNames(&source, &length, &name, 1);
    if (hlsl) {
        const char *entry = entry_point(text);
        shader.setEntryPoint(entry);
        shader.setSourceEntryPoint(entry);
        shader.setHlslIoMapping(true);
    }
    /* Making the tables of built-in functions, once a version, would be most of the work if each 4.x had its own. */
    if (text.find("#version 4") != std::string::npos)
        shader.setOverrideVersion(460);
    shader.setAutoMapLocations(true);
    shader.setAutoMapBindings(true);
    shader.setEnvInput(hlsl ? glslang::EShSourceHlsl : glslang::EShSourceGlsl, stage->language,
                       glslang::EShClientVulkan, 100);
    shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_3);
    shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_6);

    int messages = EShMsgSpvRules | EShMsgVulkanRules | EShMsgDebugInfo;
    if (hlsl)
        messages |= EShMsgReadHlsl | EShMsgHlslOffsets | EShMsgHlslLegalization;
    const auto rules = static_cast<EShMessages>(messages);
    if (!shader.parse(GetDefaultResources(), 100, false, rules)) {
        put(shader.getInfoLog());
        return 0;
    }
    glslang::TProgram program;
    program.addShader(&shader);
    if (!program.link(rules) || !program.mapIO()) {
        put(program.getInfoLog());
        return 0;
    }
    std::vector<unsigned int> words;
    glslang::SpvOptions options;
    options.disableOptimizer = true;
    glslang::GlslangToSpv(*program.getIntermediate(stage->language), words, &options);
    sink(context, words.data(), words.size() * sizeof words[0]);

    std::ostringstream listing;
    spv::Disassemble(listing, words);
    put(listing.str());

    if (program.buildReflection(EShReflectionAllBlockVariables | EShReflectionIntermediateIO)) {
        for (int index = 0; index < program.getNumUniformVariables(); index++)
            put(program.getUniform(index).name);
        for (int index = 0; index < program.getNumPipeInputs(); index++)
            put(program.getPipeInput(index).name);
    }
    return 1;
}
