package org.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SettingsTest {

    @Test
    void namesDescriptionsAndDefaultsAreSound() {
        Set<String> names = new HashSet<>();
        for (Setting<?> setting : Settings.all()) {
            assertTrue(names.add(setting.name()), setting.name() + " is listed once");
            assertTrue(setting.name().matches("(NCCL|MILLRACE)_[A-Z0-9_]+"), setting.name());
            assertFalse(setting.description().contains("\n"), setting.name());
            assertFalse(setting.type().allowed().isBlank(), setting.name());
            assertDefaultIsReadable(setting);
        }
        assertEquals("millrace.nccl.library", Settings.NCCL_LIBRARY.property());
    }

    private static <T> void assertDefaultIsReadable(Setting<T> setting) {
        T value = setting.defaultValue();
        if (!value.equals(Optional.empty()) && !value.equals("")) {
            assertEquals(value, setting.type().parse(setting.type().format(value)), setting.name());
        }
    }
}
