package org.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.millrace.config.Settings.Part;

/**
 * The page {@code settings.md} is the table of settings. To generate it:
 * {@code mvn -Pfast test -Dtest=SettingsPageTest -Dsettings.page=write}.
 */
class SettingsPageTest {

    private static final Path PAGE = Path.of("src/site/markdown/settings.md");

    private static final String HEAD =
            """
                    <!-- Generated from the table in Settings.java; SettingsPageTest has the command. -->
                    # Settings

                    A setting is an environment variable. Programs can also set it in two other ways:

                    * as a Java system property in lower case with dots: `MILLRACE_NET` is `millrace.net`;
                    * as an entry of the map that `Millrace.join` takes, or with the command line's `-D`.

                    The map has priority over the property, and the property over the variable. An empty value counts as unset. A setting
                    has NCCL's name if NCCL has one for the same purpose. An invalid value is an error that names its origin and the
                    allowed values. An unknown `MILLRACE_*` name is an error, too, except in the plugin. `millrace doctor` prints every
                    value and its origin.
                    The page [seeds.md](development/seeds.md) describes each setting's effect on the emulated device, in the takeover and
                    in GIN.
                    """;

    private static String page() {
        StringBuilder page = new StringBuilder(HEAD);
        for (Part part : Part.values()) {
            page.append("\n## ").append(part.title()).append("\n\n");
            if (part.ofThePlugin()) {
                page.append("Only the plugin reads these settings, and only from the environment.\n\n");
            }
            page.append("| name | value | default | meaning |\n| --- | --- | --- | --- |\n");
            Settings.all().stream().filter(setting -> setting.part() == part).forEach(each -> page.append(row(each)));
        }
        return page.toString();
    }

    private static <T> String row(Setting<T> setting) {
        T value = setting.defaultValue();
        String otherwise = value.equals(Optional.empty()) || setting.type().format(value).isEmpty() ? "unset"
                : "`" + setting.type().format(value) + "`";
        String aliases = setting.aliases().stream().map(name -> "`" + name + "`").collect(Collectors.joining(", "));
        return "| `" + setting.name() + "` | " + cell(setting.type().allowed()) + " | " + otherwise + " | "
                + cell(setting.description()) + (aliases.isEmpty() ? "" : ". Also: " + aliases) + " |\n";
    }

    private static String cell(String text) {
        return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_");
    }

    @Test
    void thePageIsTheTable() throws IOException {
        if ("write".equals(System.getProperty("settings.page"))) {
            Files.writeString(PAGE, page());
        }
        assertEquals(page(), Files.exists(PAGE) ? Files.readString(PAGE) : "no " + PAGE);
    }
}
