/**
 * Collectives on random operands, and references that say what every element of a result must be. Independent of the
 * code that runs them; used by everything that measures or checks a communicator.
 */
@NullMarked
package org.millrace.cli.check;

import org.jspecify.annotations.NullMarked;
