package org.millrace.cli.base;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.millrace.config.NearestName;
import org.millrace.config.Setting.ValueType;
import org.millrace.config.ValueTypes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Converters that give command-line options the syntax of settings. */
public final class Converters {

    private Converters() {}

    public abstract static class OfValueType<T> implements ITypeConverter<T> {

        private final ValueType<T> type;

        protected OfValueType(ValueType<T> type) {
            this.type = type;
        }

        @Override
        public T convert(String text) {
            try {
                return type.parse(text.strip());
            } catch (IllegalArgumentException unusable) {
                throw new TypeConversionException("'" + text + "' is not usable; "
                        + NearestName.hint(text, names(), "allowed: " + type.allowed()));
            }
        }

        /**
         * Returns the allowed values, for suggestions after a misspelled name. If the allowed values are numbers,
         * returns an empty list.
         */
        private List<String> names() {
            List<String> names = List.of(type.allowed().split(", "));
            return names.stream().allMatch(name -> name.matches("[A-Za-z]\\w*")) ? names : List.of();
        }
    }

    public static final class Size extends OfValueType<Long> {
        Size() {
            super(new ValueTypes.SizeType(0, 1L << 40, 1));
        }
    }

    public static final class Time extends OfValueType<Duration> {
        Time() {
            super(new ValueTypes.DurationType(Duration.ofMillis(1), Duration.ofDays(7)));
        }
    }

    public static final class Flag extends OfValueType<Boolean> {
        Flag() {
            super(ValueTypes.booleans());
        }
    }

    public static final class Count extends OfValueType<Integer> {
        Count() {
            super(ValueTypes.integers(1, Integer.MAX_VALUE));
        }
    }

    public static final class CountOrNone extends OfValueType<Integer> {
        CountOrNone() {
            super(ValueTypes.integers(0, Integer.MAX_VALUE));
        }
    }

    /**
     * Number of ranks, contexts or channels. The number is limited, because each rank, context or channel needs
     * threads, sockets and memory, and each pair of ranks needs additional sockets and memory.
     */
    public static final class Few extends OfValueType<Integer> {
        Few() {
            super(ValueTypes.integers(1, 256));
        }
    }

    public static final class Seed extends OfValueType<Long> {
        Seed() {
            super(ValueTypes.longs());
        }
    }

    /**
     * A file that a command will write. If the file cannot be written, the command reports this before a long run, not
     * after the run.
     */
    public static final class ResultFile implements ITypeConverter<Path> {
        @Override
        public Path convert(String text) {
            Path file = Path.of(text);
            require(!text.isBlank(), "the name of a file is missing");
            require(!Files.isDirectory(file), text + " is a directory; name a file");
            Path directory = file.toAbsolutePath().getParent();
            require(Files.isDirectory(directory), text + ": the directory does not exist");
            require(Files.isWritable(Files.exists(file) ? file : directory), text + " cannot be written by this user");
            return file;
        }

        private static void require(boolean condition, String otherwise) {
            if (!condition) {
                throw new TypeConversionException(otherwise);
            }
        }
    }
}
