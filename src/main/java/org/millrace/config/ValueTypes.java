package org.millrace.config;

import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.millrace.config.Setting.ValueType;

/** Creates the value types of settings. Sizes and durations have classes of their own. */
public final class ValueTypes {

    private ValueTypes() {}

    private record Parsed<T>(Function<String, T> parser, Function<T, String> formatter,
            String allowed) implements ValueType<T> {
        @Override
        public T parse(String text) {
            return parser.apply(text);
        }

        @Override
        public String format(T value) {
            return formatter.apply(value);
        }
    }

    /**
     * {@return the type of whole numbers in a range}
     *
     * @param min minimum value
     * @param max maximum value
     */
    public static ValueType<Integer> integers(int min, int max) {
        return integers(min, max, max == Integer.MAX_VALUE ? "a whole number, " + min + " or more"
                : "a whole number from " + min + " to " + max);
    }

    /**
     * {@return the type of a setting whose value is a whole number in a range}
     *
     * @param min     minimum value
     * @param max     maximum value
     * @param allowed description of the range, which follows the text "allowed: " in a message
     */
    public static ValueType<Integer> integers(int min, int max, String allowed) {
        return new Parsed<>(text -> {
            int value = Integer.parseInt(text);
            if (value < min || value > max) {
                throw new IllegalArgumentException(text);
            }
            return value;
        }, String::valueOf, allowed);
    }

    /**
     * {@return the type of numbers of bytes that are powers of two, in the format of {@link SizeType}}
     *
     * @param min minimum value, a power of two
     * @param max maximum value, a power of two
     */
    public static ValueType<Long> powersOfTwo(long min, long max) {
        SizeType sizes = new SizeType(min, max, 1);
        return new Parsed<>(text -> {
            long value = sizes.parse(text);
            if (Long.bitCount(value) != 1) {
                throw new IllegalArgumentException(text);
            }
            return value;
        }, sizes::format, sizes.allowed() + "; only powers of two");
    }

    /** {@return the type of signed whole numbers of 64 bits} */
    public static ValueType<Long> longs() {
        return new Parsed<>(Long::parseLong, String::valueOf, "a whole number of 64 bits");
    }

    /** {@return the type of {@code 1} and {@code 0} in NCCL's format, and of words such as yes and no} */
    public static ValueType<Boolean> booleans() {
        return new Parsed<>(text -> switch (text.toLowerCase(Locale.ROOT)) {
            case "1", "true", "yes", "on" -> true;
            case "0", "false", "no", "off" -> false;
            default -> throw new IllegalArgumentException(text);
        }, value -> value ? "1" : "0", "1 (or true, yes, on) or 0 (or false, no, off)");
    }

    /**
     * {@return the type of an enumeration's constants, by their {@code toString()}, in upper or lower case}
     *
     * @param type the enumeration
     * @param <E>  the enumeration
     */
    public static <E extends Enum<E>> ValueType<E> choices(Class<E> type) {
        List<E> constants = List.of(type.getEnumConstants());
        return new Parsed<>(
                text -> constants.stream()
                        .filter(constant -> constant.toString().equalsIgnoreCase(text))
                        .findFirst()
                        .orElseThrow(() -> new IllegalArgumentException(text)),
                Enum::toString, constants.stream().map(Enum::toString).collect(Collectors.joining(", ")));
    }

    /**
     * {@return a type with a few words as values, in upper or lower case}
     *
     * @param words the allowed words, in lower case
     */
    public static ValueType<String> words(String... words) {
        List<String> allowed = List.of(words);
        return new Parsed<>(text -> {
            String word = text.toLowerCase(Locale.ROOT);
            if (!allowed.contains(word)) {
                throw new IllegalArgumentException(text);
            }
            return word;
        }, Function.identity(), String.join(", ", allowed));
    }

    /**
     * {@return a type with two kinds of values: a few words, in upper or lower case, and all texts with a prefix}
     *
     * @param prefix prefix of the texts; more text must follow
     * @param rest   description of the text after the prefix
     * @param words  the allowed words, in lower case
     */
    public static ValueType<String> wordsOr(String prefix, String rest, String... words) {
        ValueType<String> known = words(words);
        return new Parsed<>(
                text -> text.startsWith(prefix) && text.length() > prefix.length() ? text : known.parse(text),
                Function.identity(), known.allowed() + ", " + prefix + rest);
    }

    /**
     * {@return a type with a few words, each of which stands for a value}
     *
     * @param meanings the values by their words
     * @param allowed  description of the words, which follows the text "allowed: " in a message
     * @param <T>      type of a value in the program
     */
    public static <T> ValueType<T> values(Map<String, T> meanings, String allowed) {
        return new Parsed<>(text -> {
            T value = meanings.get(text);
            if (value == null) {
                throw new IllegalArgumentException(text);
            }
            return value;
        }, value -> meanings.keySet()
                .stream()
                .filter(word -> meanings.get(word).equals(value))
                .findFirst()
                .orElseThrow(), allowed);
    }

    /**
     * {@return the type of any text}
     *
     * @param meaning description of the allowed texts. A message shows it after the text "allowed: "
     */
    public static ValueType<String> text(String meaning) {
        return new Parsed<>(Function.identity(), Function.identity(), meaning);
    }

    /** {@return the type of names of files and directories; the file or directory need not exist} */
    public static ValueType<Path> paths() {
        return new Parsed<>(Path::of, Path::toString, "a path");
    }

    /** {@return the type of internet addresses in numeric form; names are not looked up} */
    public static ValueType<InetAddress> addresses() {
        return new Parsed<>(InetAddress::ofLiteral, InetAddress::getHostAddress,
                "an address as in 10.0.0.1 or fd00::1");
    }

    /**
     * {@return the type of values separated by commas; empty elements are ignored}
     *
     * @param element type of one value
     * @param <T>     type of one value in the program
     */
    public static <T> ValueType<List<T>> lists(ValueType<T> element) {
        return new Parsed<>(
                text -> Arrays.stream(text.split(","))
                        .map(String::strip)
                        .filter(part -> !part.isEmpty())
                        .map(element::parse)
                        .toList(),
                values -> values.stream().map(element::format).collect(Collectors.joining(",")),
                "a list with commas between, each " + element.allowed());
    }

    /**
     * {@return the type of an optional value} The code that reads the setting determines the meaning of an absent
     * value.
     *
     * @param type type of a value that is present
     * @param <T>  type of that value in the program
     */
    public static <T> ValueType<Optional<T>> optional(ValueType<T> type) {
        return new Parsed<>(text -> Optional.of(type.parse(text)), value -> value.map(type::format).orElse("unset"),
                type.allowed());
    }

    /**
     * Type of numbers of bytes: {@code 65536}, {@code 64K} or {@code 64KiB}, and likewise with {@code M}, {@code G} and
     * {@code T}. K is 1024, as in NCCL and nccl-tests.
     *
     * @param min      minimum value
     * @param max      maximum value
     * @param multiple unit of sizes: each size must be a multiple of this number; 1 for any size
     */
    public record SizeType(long min, long max, long multiple) implements ValueType<Long> {

        private static final String UNITS = "KMGT";

        @Override
        public Long parse(String text) {
            int digits = 0;
            while (digits < text.length() && text.charAt(digits) >= '0' && text.charAt(digits) <= '9') {
                digits++;
            }
            long value = Long.parseLong(text.substring(0, digits));
            long unit = unit(text.substring(digits).strip());
            if (value > Long.MAX_VALUE / unit) {
                throw new IllegalArgumentException(text);
            }
            long scaled = value * unit;
            if (scaled < min || scaled > max || scaled % multiple != 0) {
                throw new IllegalArgumentException(text);
            }
            return scaled;
        }

        private static long unit(String text) {
            String upper = text.toUpperCase(Locale.ROOT);
            if (upper.isEmpty() || upper.equals("B")) {
                return 1;
            }
            int power = UNITS.indexOf(upper.charAt(0));
            if (power < 0 || !(upper.length() == 1 || upper.substring(1).equals("IB"))) {
                throw new IllegalArgumentException(text);
            }
            return 1L << 10 * (power + 1);
        }

        @Override
        public String format(Long value) {
            return text(value);
        }

        /**
         * {@return a size as a whole number of the largest possible unit, for instance {@code "64K"}}
         *
         * @param bytes the size
         */
        public static String text(long bytes) {
            int power = 0;
            while (bytes != 0 && bytes % 1024 == 0 && power < UNITS.length()) {
                bytes /= 1024;
                power++;
            }
            return power == 0 ? Long.toString(bytes) : bytes + UNITS.substring(power - 1, power);
        }

        @Override
        public String allowed() {
            String range =
                    max == Long.MAX_VALUE ? "of " + text(min) + " or more" : "from " + text(min) + " to " + text(max);
            return "a number of bytes " + range + (multiple == 1 ? "" : ", a multiple of " + text(multiple))
                    + ", with K, M or G for 2^10, 2^20 or 2^30 (as in 4M)";
        }
    }

    /**
     * Type of durations, always with a unit: {@code 100us}, {@code 500ms}, {@code 30s}, {@code 10m}, {@code 1h}.
     *
     * @param min minimum value
     * @param max maximum value
     */
    public record DurationType(Duration min, Duration max) implements ValueType<Duration> {

        private static final Map<String, ChronoUnit> UNITS = Map.of("us", ChronoUnit.MICROS, "ms", ChronoUnit.MILLIS,
                "s", ChronoUnit.SECONDS, "m", ChronoUnit.MINUTES, "h", ChronoUnit.HOURS);

        @Override
        public Duration parse(String text) {
            int digits = 0;
            while (digits < text.length() && text.charAt(digits) >= '0' && text.charAt(digits) <= '9') {
                digits++;
            }
            ChronoUnit unit = UNITS.get(text.substring(digits).strip());
            if (unit == null) {
                throw new IllegalArgumentException(text);
            }
            Duration value;
            try {
                value = Duration.of(Long.parseLong(text.substring(0, digits)), unit);
            } catch (ArithmeticException overflow) {
                throw new IllegalArgumentException(text, overflow);
            }
            if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
                throw new IllegalArgumentException(text);
            }
            return value;
        }

        @Override
        public String format(Duration value) {
            return text(value);
        }

        /**
         * {@return a duration as a whole number of the largest possible unit, for instance {@code "30s"}}
         *
         * @param value a duration of whole microseconds
         */
        public static String text(Duration value) {
            long micros = value.toNanos() / 1000;
            if (micros % 1000 != 0) {
                return micros + "us";
            }
            long millis = micros / 1000;
            if (millis % 1000 != 0) {
                return millis + "ms";
            }
            long seconds = millis / 1000;
            if (seconds == 0 || seconds % 60 != 0) {
                return seconds + "s";
            }
            return seconds % 3600 == 0 ? seconds / 3600 + "h" : seconds / 60 + "m";
        }

        @Override
        public String allowed() {
            return "a time from " + text(min) + " to " + text(max) + " with its unit: us, ms, s, m or h (as in 30s)";
        }
    }
}
