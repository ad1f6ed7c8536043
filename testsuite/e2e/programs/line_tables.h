// A function of a header, of which debug information with lines only (-g1) does not name the file.
static inline int
within(int value, int low, int high) {
    if (value < low)
        return 0;
    return value <= high;
}
