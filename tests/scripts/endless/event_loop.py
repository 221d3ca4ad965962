"""Goes round and round in asyncio's event loop."""

import asyncio


async def beat():
    while True:
        await asyncio.sleep(0.01)


asyncio.run(beat())
