package org.millrace.bench.report;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonParseException;
import com.google.gson.Strictness;
import com.google.gson.TypeAdapter;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;

/** JSON of maps, lists, strings, doubles, booleans and null. Values without a JSON number (NaN) become null. */
final class JsonText {

    private static final Gson GSON = new GsonBuilder().setPrettyPrinting()
            .serializeNulls()
            .disableHtmlEscaping()
            .setStrictness(Strictness.STRICT)
            .registerTypeAdapter(Double.class, new TypeAdapter<Double>() {
                @Override
                public void write(JsonWriter out, Double value) throws IOException {
                    if (value == null || !Double.isFinite(value)) {
                        out.nullValue();
                    } else {
                        out.value(value);
                    }
                }

                @Override
                public Double read(JsonReader in) throws IOException {
                    return in.nextDouble();
                }
            })
            .create();

    private JsonText() {}

    static String write(Object value) {
        return GSON.toJson(value) + "\n";
    }

    /**
     * Reads a value.
     *
     * @throws IllegalArgumentException if the text is not JSON. The message contains the position
     */
    static Object read(String text) {
        try {
            if (text.isBlank()) {
                throw new IllegalArgumentException("no JSON: the file is empty");
            }
            return GSON.fromJson(text, Object.class);
        } catch (JsonParseException e) {
            throw new IllegalArgumentException(
                    "no JSON: " + e.getMessage().lines().findFirst().orElse("").replaceFirst("^.*Exception: ", ""), e);
        }
    }
}
