-- Format 2: deliveries that are told together, and repeats that are not told.
-- `grp` and `print` are digests of the group and of what is said. `lead` is the event whose delivery tells this one too
-- (state 5, until that is settled) or told the same before (state 4).
ALTER TABLE deliveries ADD COLUMN grp BLOB;
ALTER TABLE deliveries ADD COLUMN print BLOB;
ALTER TABLE deliveries ADD COLUMN lead INTEGER;
-- The messages of a group, what was said in it, and who is told with whom.
CREATE INDEX heads ON deliveries (channel, grp, state) WHERE grp IS NOT NULL AND lead IS NULL;
CREATE INDEX prints ON deliveries (channel, grp, print) WHERE grp IS NOT NULL AND state <> 4;
CREATE INDEX leads ON deliveries (channel, lead) WHERE lead IS NOT NULL;
CREATE INDEX joined ON deliveries (seq) WHERE state = 5;
