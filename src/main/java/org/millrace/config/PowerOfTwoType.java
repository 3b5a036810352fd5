package org.millrace.config;

/**
 * Numbers of bytes that are powers of two, written as {@link SizeType} reads them.
 *
 * @param min the smallest that is allowed, a power of two
 * @param max the largest that is allowed, a power of two
 */
public record PowerOfTwoType(long min, long max) implements ValueType<Long> {

    private SizeType sizes() {
        return new SizeType(min, max, 1);
    }

    @Override
    public Long parse(String text) {
        long value = sizes().parse(text);
        if (Long.bitCount(value) != 1) {
            throw new IllegalArgumentException(text);
        }
        return value;
    }

    @Override
    public String format(Long value) {
        return sizes().format(value);
    }

    @Override
    public String allowed() {
        return sizes().allowed() + "; only powers of two";
    }
}
