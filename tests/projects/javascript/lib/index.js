export { dedupe, repeated } from "./dedupe.js";
