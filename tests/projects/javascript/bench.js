import { dedupe, repeated } from "./lib/index.js";

const items = Array.from({ length: 6000 }, (_, i) => (i * 7919) % 4500);
const began = process.cpuUsage();
const kept = dedupe(items).length;
const twice = repeated(items).length;
const { user, system } = process.cpuUsage(began);
console.log(JSON.stringify({ kept, twice, milliseconds: (user + system) / 1000 }));
