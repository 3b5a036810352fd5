package org.millrace.device.gin;

/**
 * Ranks at equal distances, as {@code ncclTeam}.
 *
 * @param stride distance between consecutive members in the world
 */
public record GinTeam(int rank, int ranks, int stride) {

    /** Returns a member's number in the world. */
    public int toWorld(int worldRank, int member) {
        if (member < 0 || member >= ranks) {
            throw new IndexOutOfBoundsException("rank " + member + " of a team of " + ranks);
        }
        return worldRank + (member - rank) * stride;
    }
}
