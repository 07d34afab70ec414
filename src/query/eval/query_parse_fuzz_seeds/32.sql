SELECT VALUE RegexExtractAll(c.s, "(T|e).*?x+", "isx") FROM c WHERE RegexMatch(c.s, "^[A-Z](?=ex)\\w{1,3}$", "m")
