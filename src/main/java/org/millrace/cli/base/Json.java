package org.millrace.cli.base;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonParseException;
import com.google.gson.Strictness;
import com.google.gson.ToNumberPolicy;
import com.google.gson.TypeAdapter;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** Maps, collections, strings, numbers, booleans and null as JSON (RFC 8259), by Gson. */
public final class Json {

    /**
     * Position of an error in a message of Gson. Only the position is shown to the user, because the rest of the
     * message is for programmers.
     */
    private static final Pattern POSITION = Pattern.compile("line \\d+ column \\d+");
    private static final Gson GSON = new GsonBuilder().setPrettyPrinting()
            .serializeNulls()
            .disableHtmlEscaping()
            .setStrictness(Strictness.STRICT)
            .setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE)
            .registerTypeAdapter(Double.class, new FiniteNumbers())
            .create();

    private Json() {}

    /** {@return a modifiable JSON object from alternating names and values, in this order} */
    public static Map<String, Object> object(@Nullable Object... namesAndValues) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            object.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return object;
    }

    /** {@return a copy of an object with further names and values} */
    public static Map<String, Object> with(Map<String, Object> object, @Nullable Object... namesAndValues) {
        Map<String, Object> all = new LinkedHashMap<>(object);
        all.putAll(object(namesAndValues));
        return all;
    }

    /**
     * Converts a value to text with a line end. Each level is indented by two blanks.
     *
     * @param value value to write; numbers that JSON does not have (infinities, NaN) become null
     * @throws IllegalArgumentException if the value contains an object of a type without a JSON form
     */
    public static String write(@Nullable Object value) {
        check(value);
        return GSON.toJson(value) + '\n';
    }

    public static void save(String option, Path file, String text) {
        try {
            Files.writeString(file, text);
        } catch (IOException failure) {
            throw new MillraceException(option + " " + file + " cannot be written: " + FailureText.of(failure),
                    failure);
        }
    }

    /**
     * Parses a value. A whole number becomes a {@link Long}, any other number a {@link Double}.
     *
     * @throws IllegalArgumentException if the text is not JSON; the message names the position
     */
    public static @Nullable Object read(String text) {
        if (text.isBlank()) {
            throw new IllegalArgumentException("the text is empty, and not JSON");
        }
        try {
            return GSON.fromJson(text, Object.class);
        } catch (JsonParseException e) {
            Matcher position = POSITION.matcher(String.valueOf(e.getMessage()));
            throw new IllegalArgumentException(
                    "the text is not JSON" + (position.find() ? " from " + position.group() + " on" : ""), e);
        }
    }

    /**
     * Checks that a value consists of types with a JSON form. Gson would otherwise read any object by reflection.
     */
    private static void check(@Nullable Object value) {
        switch (value) {
            case null -> {}
            case Map<?, ?> map -> map.values().forEach(Json::check);
            case Collection<?> collection -> collection.forEach(Json::check);
            case String string -> {}
            case Number number -> {}
            case Boolean bool -> {}
            default -> throw new IllegalArgumentException("no JSON for " + value.getClass());
        }
    }

    private static final class FiniteNumbers extends TypeAdapter<Double> {

        /** Smallest absolute value that is written with an exponent. All its digits would be hard to read. */
        private static final double LONGEST = 1e15;

        @Override
        public void write(JsonWriter out, Double value) throws IOException {
            if (Double.isFinite(value)) {
                // Smaller numbers are written without an exponent, so that people can read times in nanoseconds.
                String plain = new BigDecimal(value.toString()).toPlainString();
                out.jsonValue(
                        Math.abs(value) < LONGEST ? plain.contains(".") ? plain : plain + ".0" : value.toString());
            } else {
                out.nullValue();
            }
        }

        @Override
        public Double read(JsonReader in) throws IOException {
            return in.nextDouble();
        }
    }
}
