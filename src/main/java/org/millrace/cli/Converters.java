package org.millrace.cli;

import java.time.Duration;
import org.millrace.config.DurationType;
import org.millrace.config.SizeType;
import org.millrace.config.ValueType;
import org.millrace.config.ValueTypes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Lets options of the command line be written as settings are. */
public final class Converters {

    private Converters() {
    }

    private abstract static class OfValueType<T> implements ITypeConverter<T> {

        private final ValueType<T> type;

        OfValueType(ValueType<T> type) {
            this.type = type;
        }

        @Override
        public T convert(String text) {
            try {
                return type.parse(text.strip());
            } catch (IllegalArgumentException unusable) {
                throw new TypeConversionException("'" + text + "' is not usable; allowed: " + type.allowed());
            }
        }
    }

    /** Sizes of 0 to 1 TiB. */
    public static final class Size extends OfValueType<Long> {
        /** For picocli. */
        public Size() {
            super(new SizeType(0, 1L << 40, 1));
        }
    }

    /** Times of 1 ms to a week. */
    public static final class Time extends OfValueType<Duration> {
        /** For picocli. */
        public Time() {
            super(new DurationType(Duration.ofMillis(1), Duration.ofDays(7)));
        }
    }

    /** 0 or 1. */
    public static final class Flag extends OfValueType<Boolean> {
        /** For picocli. */
        public Flag() {
            super(ValueTypes.booleans());
        }
    }

    /** Whole numbers of at least 1. */
    public static final class Count extends OfValueType<Integer> {
        /** For picocli. */
        public Count() {
            super(ValueTypes.integers(1, Integer.MAX_VALUE));
        }
    }
}
