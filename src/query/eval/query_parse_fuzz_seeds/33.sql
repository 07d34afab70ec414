SELECT ST_DISTANCE({"type": "Point", "coordinates": [c.n, 2]}, {"type": "Polygon", "coordinates": [[[0,0],[9,0],[9,9],[0,0]]]}), ST_ISVALIDDETAILED(c.o), DOCUMENTID(c) FROM c
