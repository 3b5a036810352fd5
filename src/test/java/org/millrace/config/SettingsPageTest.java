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
                    <!-- Written from the table in Settings.java: SettingsPageTest says how. -->
                    # Settings

                    A setting is an environment variable. For programs it is also a Java system property in lower case with dots
                    (`MILLRACE_NET` is `millrace.net`), and an entry of the map that `Millrace.join` and the command line's `-D` take. The map wins over
                    the property, and that over the variable; an empty value counts as none. Names are NCCL's where NCCL has one for the same thing.
                    A value that is not usable is an error that says where it stands and what is allowed; so is an unknown `MILLRACE_*` name.
                    `millrace doctor` prints every value and where it came from. What each setting does on the emulated device, in the takeover and in GIN is in
                    [seeds.md](development/seeds.md).
                    """;

    private static String page() {
        StringBuilder page = new StringBuilder(HEAD);
        for (Part part : Part.values()) {
            page.append("\n## ").append(part.title()).append("\n\n");
            if (part.ofThePlugin()) {
                page.append("Read by the plugin alone, from the environment alone.\n\n");
            }
            page.append("| name | value | default | |\n| --- | --- | --- | --- |\n");
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
