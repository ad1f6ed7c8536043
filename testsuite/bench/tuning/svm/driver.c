/*
 * svm: trains a classifier on points made at random, and sums its predictions.
 *
 * usage: svm TYPE KERNEL SEED POINTS FEATURES CLASSES      TYPE: 0 C-SVC, 1 nu-SVC, 3 regression; KERNEL: 0 linear, 1 polynomial, 2 radial
 */
#include "bench.h"
#include "svm.h"

static void quiet(const char *text)
{
    (void)text;
}

static double pseudo(struct random *random)
{
    return (double)(next_random(random) >> 11) / 9007199254740992.0 - .5;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        die("usage: svm TYPE KERNEL SEED POINTS FEATURES CLASSES");
    struct random random = {parse_number(argv[3]) * 2 + 1};
    size_t points = parse_number(argv[4]), features = parse_number(argv[5]), classes = parse_number(argv[6]);
    struct svm_problem problem = {(int)points, allocate(points * sizeof(double)), allocate(points * sizeof(struct svm_node *))};
    for (size_t i = 0; i < points; i++) {
        struct svm_node *node = problem.x[i] = allocate((features + 1) * sizeof *node);
        size_t class = i % classes;
        double value = 0;
        for (size_t f = 0; f < features; f++) {
            if (next_random(&random) >> 62 == 0)
                continue;
            node->index = (int)f + 1;
            node->value = pseudo(&random) * 3 + ((f + class) % classes == 0 ? .6 : 0);
            value += node->value * (f % 3 ? 1 : node->value);
            node++;
        }
        node->index = -1;
        problem.y[i] = parse_number(argv[1]) == 3 ? value : (double)class;
    }
    struct svm_parameter parameter = {(int)parse_number(argv[1]), (int)parse_number(argv[2]), 3, 1.0 / (double)features, 0, 4, .01, 1, 0, NULL, NULL, .3, .1, 1, 0};
    svm_set_print_string_function(quiet);
    const char *wrong = svm_check_parameter(&problem, &parameter);
    if (wrong)
        die("%s", wrong);
    checksum_t sum = CHECKSUM_START;
    struct svm_model *model = svm_train(&problem, &parameter);
    for (size_t i = 0; i < points; i++) {
        double prediction = svm_predict(model, problem.x[i]) * 16;
        sum = checksum_number(sum, (uint64_t)(int64_t)prediction);
    }
    svm_free_and_destroy_model(&model);
    print_checksum(sum);
    return 0;
}
