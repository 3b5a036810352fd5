package org.millrace.cli;

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
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** Maps, collections, strings, numbers, booleans and null as JSON (RFC 8259), by Gson. */
final class Json {

    private static final Gson GSON = new GsonBuilder().setPrettyPrinting()
            .serializeNulls()
            .disableHtmlEscaping()
            .setStrictness(Strictness.STRICT)
            .setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE)
            .registerTypeAdapter(Double.class, new FiniteNumbers())
            .create();

    private Json() {}

    /** {@return an object of names, each before its value, in this order; it may be added to} */
    static Map<String, Object> object(@Nullable Object... namesAndValues) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            object.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return object;
    }

    /**
     * Writes a value, two blanks deeper with each level, and a line's end behind it.
     *
     * @param value what to write; numbers that JSON does not have (infinities, NaN) become null
     * @throws IllegalArgumentException if there is anything else in it
     */
    static String write(@Nullable Object value) {
        check(value);
        return GSON.toJson(value) + '\n';
    }

    /** Keeps a text in the file that an option names. */
    static void save(String option, Path file, String text) {
        try {
            Files.writeString(file, text);
        } catch (IOException failure) {
            throw new MillraceException(option + " " + file + " cannot be written: " + failure, failure);
        }
    }

    /**
     * Reads a value: a whole number becomes a {@link Long}, another a {@link Double}.
     *
     * @throws IllegalArgumentException if the text is no JSON; the message says where
     */
    static @Nullable Object read(String text) {
        if (text.isBlank()) {
            throw new IllegalArgumentException("no JSON: the text is empty");
        }
        try {
            return GSON.fromJson(text, Object.class);
        } catch (JsonParseException e) {
            throw new IllegalArgumentException("no JSON: "
                    + String.valueOf(e.getMessage()).lines().findFirst().orElse("").replaceFirst("^.*Exception: ", ""),
                    e);
        }
    }

    /** Gson would look into any object by reflection. */
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

        /** What is longer is easier to read with an exponent. */
        private static final double LONGEST = 1e15;

        @Override
        public void write(JsonWriter out, Double value) throws IOException {
            if (Double.isFinite(value)) {
                String plain = new BigDecimal(value.toString()).toPlainString(); // for people: times are long numbers
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
